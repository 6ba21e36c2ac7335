package oidc

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one installation of usher and the MCP server it logs in to.
type world struct {
	t      *testing.T
	p      *Provider
	e      *auth.Engine
	srv    config.Server
	a      auth.Account
	client *http.Client // of the test itself
	calls  *http.Client // as watched by the engine
}

func newWorld(t *testing.T, p *Provider) *world {
	t.Helper()
	transport := &http.Transport{}
	w := &world{t: t, p: p, a: auth.Account{Server: "notes"}, client: &http.Client{Transport: transport}}
	mcp := fake.New(nil)
	resource := httptest.NewUnstartedServer(nil)
	resource.Config.Handler = p.Protect("http://"+resource.Listener.Addr().String(), w.client, mcp.Handler())
	resource.Start()
	store := vault.NewMemory()
	w.e = auth.New(store, nil)
	w.calls = &http.Client{Transport: w.e.Transport(transport)}
	w.srv = config.Server{Name: "notes", Transport: config.TransportHTTP, URL: resource.URL + "/mcp"}
	t.Cleanup(func() {
		if err := w.e.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
		_ = store.Close()
		mcp.Close()
		resource.Close()
		transport.CloseIdleConnections()
	})
	return w
}

// login goes through the pages and hands the answer back.
func (w *world) login() *auth.Login {
	w.t.Helper()
	pending, err := w.e.Begin(w.t.Context(), w.a, w.srv, nil)
	if err != nil {
		w.t.Fatalf("begin: %v", err)
	}
	login, err := w.e.Complete(w.t.Context(), w.answer(pending, newBrowser(w.t, w.client, w.p.Issuer)))
	if err != nil {
		w.t.Fatalf("complete: %v", err)
	}
	return login
}

// answer is what the authorization server sends back through the browser.
func (w *world) answer(pending *auth.Pending, b *browser) auth.Callback {
	w.t.Helper()
	away, page, err := b.visit(pending.AuthorizeURL)
	if err != nil {
		w.t.Fatal(err)
	}
	if away == nil || !strings.HasPrefix(away.String(), pending.RedirectURI+"?") {
		w.t.Fatalf("the pages lead to %v, want %s; the last page: %s", away, pending.RedirectURI, page)
	}
	cb, err := oauth.ReadCallback(away.Query())
	if err != nil {
		w.t.Fatal(err)
	}
	return cb
}

// call asks the MCP server something as a host does: once more if Refused says so.
func (w *world) call(ctx context.Context, a auth.Account) error {
	for try := 0; ; try++ {
		req := w.request(ctx)
		if err := w.e.Authorize(ctx, a, &w.srv, req); err != nil {
			return err
		}
		resp, err := w.calls.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case err != nil:
			return err
		case resp.StatusCode == http.StatusOK && strings.Contains(string(body), `"serverInfo"`):
			return nil
		case resp.StatusCode != http.StatusUnauthorized || try == 1:
			return fmt.Errorf("HTTP %d: %s", resp.StatusCode, body)
		}
		if err := w.e.Refused(ctx, a, w.srv, auth.Challenge{Status: resp.StatusCode}); err != nil {
			return err
		}
	}
}

// request is the first thing a client says to an MCP server.
func (w *world) request(ctx context.Context) *http.Request {
	w.t.Helper()
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"usher","version":"1"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.srv.URL, strings.NewReader(initialize))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	return req
}

// mustCall fails the test if the call does.
func (w *world) mustCall(a auth.Account) {
	w.t.Helper()
	if err := w.call(w.t.Context(), a); err != nil {
		w.t.Fatalf("call as %s: %v; refused: %+v", a, err, w.p.all("refused", w.clientID(a)))
	}
}

// token is the access token that requests carry now.
func (w *world) token() string {
	w.t.Helper()
	req := w.request(w.t.Context())
	if err := w.e.Authorize(w.t.Context(), w.a, &w.srv, req); err != nil {
		w.t.Fatal(err)
	}
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !ok {
		w.t.Fatalf("no bearer token on the request")
	}
	return token
}

// verdict is what the authorization server says about a token.
func (w *world) verdict(token string) Verdict {
	w.t.Helper()
	v, err := w.p.Introspect(w.t.Context(), w.client, token)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// clientID is the client that the account is logged in with.
func (w *world) clientID(a auth.Account) string {
	w.t.Helper()
	s, err := w.e.Status(w.t.Context(), a)
	if err != nil {
		w.t.Fatal(err)
	}
	if s.ClientID == "" || s.Client != auth.SourceDynamic {
		w.t.Fatalf("client %q from %q, want a registered one", s.ClientID, s.Client)
	}
	return s.ClientID
}

// pendingClient is the client of a login that is not finished.
func (w *world) pendingClient() string {
	w.t.Helper()
	clients, err := w.e.Clients(w.t.Context())
	if err != nil || len(clients) != 1 {
		w.t.Fatalf("clients %+v, %v; want one", clients, err)
	}
	return clients[0].ClientID
}
