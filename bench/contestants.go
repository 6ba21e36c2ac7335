package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveBare is the reverse proxy that anybody would write: it knows nothing of MCP.
// It reads the request's body first; streamed through, an answer that comes before
// the body has left is cut off.
func serveBare(target string) error {
	to, err := url.Parse(target)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 512, 512 // two is the default
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: transport,
	}
	return listenAndTell(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	}))
}

// serveSDK is the proxy that the official SDK makes easy: a client of the server
// behind it, whose tools it offers again. The SDK wants to know which era it serves.
func serveSDK(target string, legacy bool) error {
	ctx := context.Background()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 512, 512
	client := mcp.NewClient(&mcp.Implementation{Name: "proxy", Version: "1"}, nil)
	upstream, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: target + "mcp", HTTPClient: &http.Client{Transport: transport},
	}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = upstream.Close() }()
	list, err := upstream.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "proxy", Version: "1"}, nil)
	for _, tool := range list.Tools {
		server.AddTool(tool, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return upstream.CallTool(ctx, &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments})
		})
	}
	return listenAndTell(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{JSONResponse: true, Stateless: !legacy}))
}

// contestant is one way to stand between clients and the echo server.
type contestant struct {
	name string
	*child
	path string // of the endpoint
}

// figures asks a contestant for its own.
func (c *child) figures(ctx context.Context) (figures, error) {
	var f figures
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.aside+"/figures", nil)
	if err != nil {
		return f, err
	}
	resp, err := aside.Do(req)
	if err != nil {
		return f, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return f, errors.New(resp.Status)
	}
	return f, json.NewDecoder(resp.Body).Decode(&f)
}

// aside asks for figures; it never changes.
var aside = &http.Client{Timeout: 30 * time.Second}
