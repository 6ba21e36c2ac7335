package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/gateway/authn"
)

// users authenticates clients of the gateway as the program does it elsewhere.
type users map[string]string // a name for each key

// Authenticate implements [authn.Authenticator].
func (u users) Authenticate(_ context.Context, r *http.Request) (authn.Identity, error) {
	key := r.Header.Get("X-Api-Key")
	name, ok := u[key]
	if !ok {
		return authn.Identity{}, &authn.RefusedError{Reason: "unknown key"}
	}
	return authn.Identity{Principal: name, Credential: name, Servers: []string{"open"}}, nil
}

// serve mounts the gateway below /ai in a mux of the program's own.
func serve(ctx context.Context, h *usher.Host, out io.Writer) error {
	g := h.Gateway(&gateway.Options{
		Auth:  users{"k1": "ada"},
		Hosts: []string{"tools.example.com"}, // the name that clients use; loopback is always served
	})
	defer g.Close()
	mux := http.NewServeMux()
	mux.Handle("/ai/", http.StripPrefix("/ai", g.Handler()))
	s := httptest.NewServer(mux)
	defer s.Close()
	return connect(ctx, s.URL+"/ai/direct/mcp", out)
}

// connect is a client of the gateway, with the official SDK.
func connect(ctx context.Context, address string, out io.Writer) error {
	for _, key := range []string{"", "k1"} {
		c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, nil)
		session, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: withKey(key)}}, nil)
		if err != nil {
			fmt.Fprintf(out, "gateway: %q is refused\n", key)
			continue
		}
		list, err := session.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "gateway: %q sees tools: %v\n", key, len(list.Tools) > 3)
		if err := session.Close(); err != nil {
			return err
		}
	}
	return nil
}

type withKey string

// RoundTrip implements [http.RoundTripper].
func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Api-Key", string(k))
	return http.DefaultTransport.RoundTrip(r)
}
