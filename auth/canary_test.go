package auth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// spoken collects everything the package says.
type spoken struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// add takes in a value in every form somebody might print it.
func (s *spoken) add(values ...any) {
	for _, v := range values {
		fmt.Fprintf(s, "%v\n%+v\n%#v\n%s\n", v, v, v, v)
		if raw, err := json.Marshal(v); err == nil {
			_, _ = s.Write(raw)
		}
	}
}

// Every kind of secret is used in every flow, and every error, log line, page, event
// and returned value is searched for them. Only the sealed records hold them.
func TestNoSecretIsSpoken(t *testing.T) {
	var out spoken
	secrets := map[string]bool{"s3cret-of-client": true, "assertion.of.workload": true, "id.token.of.person": true}
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	faults := []string{
		"", "token-status=503;times=1", "token-error=invalid_scope;times=1", "token-error=invalid_grant;times=2", "drop-after-commit;times=1",
		"drop-before;times=2", "token-redirect=https://evil.example/;times=1", "expires-in=\"x\"", "iss-wrong;times=1", "deny;times=1", "register-secret",
	}
	for _, fault := range faults {
		w := newWorld(t, &fake.AuthOptions{
			Switches: []string{"echo-request"}, Assertions: []string{"assertion.of.workload"},
			Clients: []fake.AuthClient{{ID: "robot", Secret: "s3cret-of-client"}, {ID: "public"}},
		}, nil)
		w.e.env.Log = log
		p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
		out.add(err)
		if err != nil {
			continue
		}
		back, err := w.as.Consent(t.Context(), p.AuthorizeURL)
		if err != nil {
			t.Fatal(err)
		}
		if fault != "" {
			w.as.Set(fault)
		}
		for range 2 {
			rec := httptest.NewRecorder()
			w.e.CallbackHandler(nil).ServeHTTP(rec, httptest.NewRequest("GET", back.String(), nil))
			out.add(rec.Body.String(), rec.Header())
			_, err := w.e.Paste(t.Context(), p.State, back.String())
			out.add(err)
		}
		for range 3 {
			w.as.Expire()
			out.add(w.call(t.Context()))
		}
		for _, o := range []*config.OAuth{
			{ClientID: "robot", ClientSecret: "s3cret-of-client", Grant: config.GrantClientCredentials},
			{ClientID: "public", Assertion: "assertion.of.workload", Grant: config.GrantJWTBearer},
			{ClientID: "public", Grant: config.GrantEnterprise, IDP: &config.IDP{TokenEndpoint: "https://as.example/token", IDToken: "id.token.of.person", ClientID: "public"}},
		} {
			w.as.Set("token-error=invalid_request;times=1")
			srv := w.srv
			srv.OAuth = o
			l, err := w.e.Machine(t.Context(), Account{Server: "robot"}, srv, nil)
			out.add(l, err)
			x, err := w.e.Explain(t.Context(), w.a, srv, nil)
			out.add(x, err)
		}
		all, err := w.e.Accounts(t.Context(), "")
		out.add(all, err)
		clients, err := w.e.Clients(t.Context())
		out.add(clients, err)
		if g := w.grant(); g != nil {
			log.Info("a grant in a log", "grant", *g, "client", g.Client)
			fmt.Fprintf(&out, "%v %+v %#v", g, g, *g)
		}
		lo, err := w.e.Logout(t.Context(), w.a)
		out.add(lo, err)
		collectSecrets(t, w, secrets)
	}
	if len(secrets) < 20 {
		t.Fatalf("only %d secrets were used", len(secrets))
	}
	text := out.text.String()
	for s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("spoken: %.8s…", s)
		}
	}
	if strings.Contains(text, "canary-body") {
		t.Error("a body of a server was repeated")
	}
}

var tokenShape = regexp.MustCompile(`(at|rt|code|secret|rat|jag|device)-[A-Z2-7]{26}`)

// collectSecrets finds the secrets that a world's authorization server handed out or
// was sent.
func collectSecrets(t *testing.T, w *world, into map[string]bool) {
	t.Helper()
	for _, e := range w.as.Ledger().Entries() {
		if e.Event == fake.EventRegister || e.Event == fake.EventToken || e.Event == fake.EventRevoke {
			for _, s := range tokenShape.FindAllString(string(e.Params), -1) {
				into[s] = true
			}
			if v := e.Param("code_verifier"); v != "" {
				into[v] = true
			}
		}
	}
	for _, kind := range []string{vault.KindGrant, vault.KindClient, vault.KindPending} {
		recs, err := w.store.List(t.Context(), kind, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range recs {
			for _, s := range tokenShape.FindAllString(string(rec.Data), -1) {
				into[s] = true
			}
		}
	}
}

// Records come back as they were written, secrets and all; their other forms do not
// show them.
func TestRecordsKeepSecrets(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"register-secret"}, AuthMethods: []string{oauth.MethodBasic}}, nil)
	w.srv.OAuth.DPoP = true
	w.as.Set("require-dpop")
	w.login()
	g := w.grant()
	if g.Access.IsZero() || g.Refresh.IsZero() || g.DPoP.IsZero() || g.Client.Secret.IsZero() {
		t.Errorf("the record lacks secrets: %v", g)
	}
	req := httptest.NewRequest(http.MethodPost, mcpURL, nil)
	if err := w.e.Authorize(t.Context(), w.a, &w.srv, req); err != nil || req.Header.Get("Authorization") != "DPoP "+g.Access.Reveal() {
		t.Errorf("header not set: %v", err)
	}
}
