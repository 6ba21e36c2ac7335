package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// A server that refuses every token gets one refresh and one retry, then a person
// gets a verdict; nothing goes on in the background.
func TestVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		asked := 0
		w.net.add(mcpHost, w.as.Protect(w.prot, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			asked++
			rw.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			rw.WriteHeader(http.StatusUnauthorized)
		})))
		w.login()
		if err := w.call(t.Context()); err == nil {
			t.Fatal("the call worked")
		}
		if asked != 2 || w.tokens("refresh_token") != 1 {
			t.Errorf("%d requests, %d refreshes", asked, w.tokens("refresh_token"))
		}
		for range 20 {
			wantErr(t, w.call(t.Context()), ErrNeedsLogin, "refuses it", "oauth.audience")
			time.Sleep(time.Second)
		}
		if asked > 3 || w.tokens("refresh_token") != 1 {
			t.Errorf("%d requests, %d refreshes after the verdict", asked, w.tokens("refresh_token"))
		}
		s, err := w.e.Status(t.Context(), w.a)
		if err != nil || s.State != StateNeedsLogin || s.Command != "usher login srv" {
			t.Errorf("status %+v, %v", s, err)
		}
		// The server is given another chance after a while, and a login lifts the verdict.
		time.Sleep(verdictLife)
		_ = w.call(t.Context())
		if asked < 3 {
			t.Error("the verdict stands for ever")
		}
		w.net.add(mcpHost, w.as.Protect(w.prot, okHandler))
		w.login()
		w.mustCall()
	})
}

func TestNoRefreshToken(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"no-refresh"}}, nil)
	if l := w.login(); l.CanRefresh {
		t.Error("a login without refresh token says that it can refresh")
	}
	w.mustCall()
	w.as.Expire()
	wantErr(t, w.call(t.Context()), ErrNeedsLogin, "no refresh token")
}

// The server asks for another scope each time: a person sees at most three pages.
func TestStepUp(t *testing.T) {
	w := newWorld(t, nil, &fake.Protected{Challenge: "basic"})
	wants := "write"
	w.prot.Need = func(*http.Request) []string { return []string{wants} }
	w.login()
	err := w.call(t.Context())
	var need *NeedsLoginError
	if !errors.As(err, &need) || strings.Join(need.Scopes, " ") != "basic write" {
		t.Fatalf("error %v, scopes %v", err, need)
	}
	w.login()
	if e := w.as.Requests(fake.EventAuthorize, ""); e[1].Param("scope") != "basic write" {
		t.Errorf("step-up asked for %q", e[1].Param("scope"))
	}
	w.mustCall()

	pages := func() int { return len(w.as.Requests(fake.EventAuthorize, "")) }
	for i := range 10 {
		wants = "more" + string(rune('a'+i))
		err := w.call(t.Context())
		if errors.Is(err, ErrStepUp) {
			break
		}
		wantErr(t, err, ErrNeedsLogin)
		w.login()
	}
	if pages() != 3 {
		t.Errorf("%d consent pages", pages())
	}
	wantErr(t, w.call(t.Context()), ErrStepUp, "tools/call t")
	// A refresh never helps against a missing scope.
	if w.tokens("refresh_token") != 0 {
		t.Error("a narrow token was renewed")
	}
}

// A denial of more permission counts as an attempt.
func TestStepUpDenied(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	w.prot.Need = func(*http.Request) []string { return []string{"admin"} }
	w.as.Set("deny=access_denied")
	for range maxStepUps {
		wantErr(t, w.call(t.Context()), ErrNeedsLogin)
		_, err := w.tryLogin(nil)
		wantErr(t, err, ErrDenied)
	}
	wantErr(t, w.call(t.Context()), ErrStepUp)
	w.prot.Need = nil
	w.mustCall() // what was granted goes on to work
}

// Tokens go to the resource they were issued for and nowhere else.
func TestBearerStaysHome(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	for _, tt := range []struct{ server, target string }{
		{mcpURL, "https://evil.example/mcp"},
		{mcpURL, "http://mcp.example/mcp"},
		{mcpURL, "https://mcp.example:8443/mcp"},
		{mcpURL, "https://mcp.example.evil.example/mcp"},
		{"https://evil.example/mcp", "https://evil.example/mcp"},
		{"https://mcp.example/other", "https://mcp.example/other"},
	} {
		srv := w.srv
		srv.URL = tt.server
		req := httptest.NewRequest("POST", tt.target, nil)
		if err := w.e.Authorize(t.Context(), w.a, &srv, req); !errors.Is(err, ErrNeedsLogin) || req.Header.Get("Authorization") != "" {
			t.Errorf("server %s, request to %s: %v, header set %v", tt.server, tt.target, err, req.Header.Get("Authorization") != "")
		}
	}
	req := httptest.NewRequest("POST", mcpURL, nil)
	req.Header.Set("Authorization", "Bearer configured")
	if err := w.e.Authorize(t.Context(), w.a, &w.srv, req); err != nil || req.Header.Get("Authorization") != "Bearer configured" {
		t.Errorf("a configured header: %v", err)
	}
}

// Without the watching transport a refusal is judged by what is known.
func TestRefusedUnwatched(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.e = New(w.store, &Options{RoundTripper: w.net})
	defer func() { _ = w.e.Close() }()
	plain := &http.Client{Transport: w.net}
	w.login()
	w.as.Expire()
	if err := callAs(t.Context(), w.e, plain, w.a, w.srv); err != nil {
		t.Fatal(err)
	}
	if w.tokens("refresh_token") != 1 {
		t.Errorf("%d refreshes", w.tokens("refresh_token"))
	}
	// With the credential told, it is exact: an old token's refusal renews nothing.
	old := vault.NewSecret("Bearer at-old")
	if err := w.e.Refused(t.Context(), w.a, w.srv, Challenge{Status: 401, Credential: old}); err != nil || w.tokens("refresh_token") != 1 {
		t.Errorf("%v, %d refreshes", err, w.tokens("refresh_token"))
	}
}

// Only Browser and Show take the permission to open a page; everything that runs by
// itself has no way to.
func TestNothingOpensByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		it := NewInteractive(func(context.Context, string) error { opened++; return nil })
		w := newWorld(t, &fake.AuthOptions{TTL: time.Minute}, nil)
		w.login()
		for i := range 24 * 12 { // a day with a server that comes and goes
			if i%3 == 0 {
				w.as.RevokeAll()
			}
			_ = w.call(t.Context())
			_, _ = w.e.Status(t.Context(), w.a)
			_, _ = w.e.Explain(t.Context(), w.a, w.srv, nil)
			time.Sleep(5 * time.Minute)
		}
		if opened != 0 {
			t.Errorf("%d pages opened", opened)
		}
		_ = it.Show(t.Context(), &Pending{AuthorizeURL: "javascript:alert(1)"})
		if opened != 0 {
			t.Error("a page of another scheme was opened")
		}
		if err := it.Show(t.Context(), &Pending{AuthorizeURL: "https://as.example/authorize?x=1"}); err != nil || opened != 1 {
			t.Errorf("%v, %d opened", err, opened)
		}
	})
}

func TestLogout(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	w.a.Label = "two"
	w.login()
	out, err := w.e.Logout(t.Context(), w.a)
	if err != nil || !out.Revoked || out.ClientRemoved || len(out.Problems) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if e := w.as.Requests(fake.EventRevoke, "refresh_token"); len(e) != 1 || w.grant() != nil {
		t.Errorf("revocations %v", e)
	}
	wantErr(t, w.call(t.Context()), ErrNeedsLogin)
	w.a.Label = ""
	w.mustCall() // the other account is untouched
	out, err = w.e.Logout(t.Context(), w.a)
	if err != nil || !out.ClientRemoved {
		t.Errorf("%+v, %v", out, err)
	}
	if e := w.as.Requests(fake.EventRegister, "DELETE"); len(e) != 1 {
		t.Errorf("registrations deleted: %v", e)
	}
	if out, err = w.e.Logout(t.Context(), w.a); err != nil || out.Revoked {
		t.Errorf("logging out twice: %+v, %v", out, err)
	}
}

// A server that does not revoke does not keep a login alive here.
func TestLogoutWithoutRevocation(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	w.as.Intercept("revoke", func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(rw, "canary-body", http.StatusServiceUnavailable)
	})
	out, err := w.e.Logout(t.Context(), w.a)
	if err != nil || len(out.Problems) != 1 || w.grant() != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if strings.Contains(out.Problems[0].Error(), "canary") {
		t.Errorf("problem %v", out.Problems[0])
	}
}

func TestStatusClientsPrune(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Scopes: []string{"read", oauth.ScopeOfflineAccess}}, &fake.Protected{Scopes: []string{"read"}})
	if s, err := w.e.Status(t.Context(), w.a); err != nil || s.State != StateNone {
		t.Errorf("%+v, %v", s, err)
	}
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := w.e.Status(t.Context(), w.a); err != nil || s.State != StatePending || s.Pending.AuthorizeURL != p.AuthorizeURL {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := w.consent(p); err != nil {
		t.Fatal(err)
	}
	s, err := w.e.Status(t.Context(), w.a)
	if err != nil || s.State != StateOK || !s.CanRefresh || s.Expires.IsZero() || s.Client != oauth.SourceDynamic || strings.Join(s.Scopes, " ") != "read offline_access" {
		t.Errorf("%+v, %v", s, err)
	}
	if c, err := w.e.Clients(t.Context()); err != nil || len(c) != 1 || !c[0].InUse {
		t.Errorf("%+v, %v", c, err)
	}
	if out, err := w.e.Prune(t.Context()); err != nil || out.Clients != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := w.store.Take(t.Context(), w.a.Key(vault.KindGrant)); err != nil {
		t.Fatal(err)
	}
	if out, err := w.e.Prune(t.Context()); err != nil || out.Clients != 1 || len(out.Problems) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestExplain(t *testing.T) {
	w := newWorld(t, nil, &fake.Protected{Challenge: "read"})
	w.srv.OAuth.AuthorizeParams = map[string]string{"login_hint": "me", "state": "mine", "redirect_uri": "https://evil.example"}
	w.srv.OAuth.Audience = "api://x"
	x, err := w.e.Explain(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	if x.Authorize["login_hint"] != "me" || x.Authorize["audience"] != "api://x" || x.Authorize["scope"] != "read" || x.Authorize["state"] != "" ||
		strings.Contains(x.Authorize["redirect_uri"], "evil") || x.ScopesFrom != "the server's challenge" || x.Resource != mcpURL {
		t.Errorf("%+v", x)
	}
	if x.Metadata != "https://as.example/.well-known/oauth-authorization-server" || len(x.Flows) != 2 {
		t.Errorf("%+v", x)
	}
	recs, err := w.store.List(t.Context(), vault.KindPending, "")
	if err != nil || len(recs) != 0 {
		t.Errorf("explaining left %d pending logins, %v", len(recs), err)
	}
	if _, err := w.e.Explain(t.Context(), w.a, config.Server{Name: "child", Command: "x"}, nil); err == nil {
		t.Error("a stdio server was explained")
	}
}
