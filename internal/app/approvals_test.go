package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/advice"
	"github.com/usher-mcp/usher/vault"
)

// projectHost is a host with one server of a project file that nobody approved.
func projectHost(t *testing.T, srv config.Server) (*App, config.Server) {
	t.Helper()
	srv.Name = "strange"
	srv.Origin = config.Origin{Layer: config.LayerProject, File: ".mcp.json"}
	srv = srv.WithDefaults()
	h, err := Open(t.Context(), &Options{Config: &config.Config{Servers: []config.Server{srv}}, Store: vault.NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, srv
}

// trap is a service of this machine that nobody must reach.
func trap(t *testing.T) (address string, hits *atomic.Int32) {
	t.Helper()
	hits = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	return s.URL, hits
}

// A project file that nobody approved makes usher send nothing to this machine: not a
// request with headers of its choice, not a token request, neither by a call nor by a
// login.
func TestUnapprovedProjectServerReachesNothingLocal(t *testing.T) {
	address, hits := trap(t)
	secret := &config.OAuth{
		Grant: config.GrantClientCredentials, ClientID: "a", ClientSecret: "b", TokenEndpoint: address + "/token",
		Discovery: config.Discovery{Mode: "off"},
	}
	for name, srv := range map[string]config.Server{
		"address":        {URL: address + "/mcp"},
		"headers":        {URL: address + "/mcp", Headers: map[string]string{"X-Admin": "1"}},
		"token endpoint": {URL: "https://mcp.example.com/mcp", OAuth: secret},
		"old transport":  {URL: address + "/sse", Transport: config.TransportSSE},
	} {
		t.Run(name, func(t *testing.T) {
			h, srv := projectHost(t, srv)
			if _, err := h.Call(t.Context(), srv.Name, "x", nil, nil); !errors.Is(err, host.ErrHeldBack) {
				t.Errorf("call: %v, want %v", err, host.ErrHeldBack)
			}
			l := h.logins.ForAgents()
			if _, err := l.Begin(t.Context(), host.Key{Server: srv.Name}); !errors.Is(err, host.ErrHeldBack) {
				t.Errorf("login: %v, want %v", err, host.ErrHeldBack)
			}
		})
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests reached this machine", n)
	}
}

// The name of a plain address may resolve to a private one, at once or later. Nothing
// connects there before a person has approved the definition.
func TestUnapprovedProjectServerIsCheckedWhenDialled(t *testing.T) {
	address, hits := trap(t)
	h, srv := projectHost(t, config.Server{URL: "https://mcp.example.com/mcp"})
	if srv.NeedsApproval() {
		t.Fatalf("a plain address is held back: %v", srv.ApprovalReasons())
	}
	send := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := h.TransportFor(t.Context(), srv).RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	var said *host.Error
	if err := send(); !errors.Is(err, host.ErrHeldBack) || !errors.As(err, &said) || advice.NextStep(said) != "run: usher approve strange" {
		t.Errorf("sent before approval: %v", err)
	}
	// The same for what logins fetch: here the definition is not plain, so that it
	// leads to the trap without a name server.
	local := srv
	local.URL, local.OAuth = address, &config.OAuth{Discovery: config.Discovery{Allow: []string{"127.0.0.1"}}}
	if _, err := h.Auth().Begin(t.Context(), auth.Account{Server: "strange"}, local, nil); err == nil {
		t.Error("a login began")
	}
	if n := hits.Load(); n != 0 {
		t.Fatalf("%d requests reached this machine", n)
	}
	if err := h.Approvals().Approve(context.Background(), vault.Approval{Digest: srv.Digest(), Server: srv.Name}); err != nil {
		t.Fatal(err)
	}
	if err := send(); err != nil || hits.Load() != 1 {
		t.Errorf("sent after approval: %v, %d requests", err, hits.Load())
	}
}
