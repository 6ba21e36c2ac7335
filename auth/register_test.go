package auth

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

func TestRegistrationOrder(t *testing.T) {
	const doc = "https://client.example/usher.json"
	for name, tt := range map[string]struct {
		switches []string
		oauth    config.OAuth
		source   string
		id       string
	}{
		"configured before all":        {[]string{"cimd"}, config.OAuth{ClientID: "mine", ClientMetadataURL: doc}, SourceConfigured, "mine"},
		"document before registration": {[]string{"cimd"}, config.OAuth{ClientMetadataURL: doc}, SourceDocument, doc},
		"document not supported":       {nil, config.OAuth{ClientMetadataURL: doc}, SourceDynamic, ""},
		"registration":                 {[]string{"cimd"}, config.OAuth{}, SourceDynamic, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &fake.AuthOptions{Switches: tt.switches, Clients: []fake.AuthClient{{ID: "mine"}}}, nil)
			w.srv.OAuth = &tt.oauth
			x, err := w.e.Explain(t.Context(), w.a, w.srv, nil)
			if err != nil || x.Client != tt.source || tt.id != "" && x.ClientID != tt.id {
				t.Errorf("explained as %+v, %v", x, err)
			}
			if len(w.as.Requests(fake.EventRegister, "")) != 0 {
				t.Error("explaining registered a client")
			}
			w.login()
			g := w.grant()
			if g.Client.Source != tt.source || tt.id != "" && g.Client.ID != tt.id {
				t.Errorf("client %v from %s", g.Client.ID, g.Client.Source)
			}
			if n := len(w.as.Requests(fake.EventRegister, "")); (n == 1) != (tt.source == oauth.SourceDynamic) {
				t.Errorf("%d registrations", n)
			}
		})
	}
}

func TestNoWayToAClient(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"no-registration"}}, nil)
	_, err := w.tryLogin(nil)
	wantErr(t, err, ErrNoClient, "oauth.clientId", "oauth.redirectUri", "127.0.0.1", asHost)
}

// Many logins at once, in several processes, register once.
func TestOneRegistration(t *testing.T) {
	w := newWorld(t, nil, nil)
	var wg sync.WaitGroup
	for i := range 12 {
		e := w.e
		if i%2 == 0 {
			e = New(w.store, &Options{RoundTripper: w.net})
			defer func() { _ = e.Close() }()
		}
		wg.Go(func() {
			if _, err := e.Begin(t.Context(), w.a, w.srv, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(w.as.Requests(fake.EventRegister, "")); n != 1 {
		t.Errorf("%d registrations", n)
	}
}

func TestRegisteredSecrets(t *testing.T) {
	for _, method := range []string{oauth.MethodBasic, oauth.MethodPost} {
		w := newWorld(t, &fake.AuthOptions{Switches: []string{"register-secret=" + method}, AuthMethods: []string{method}}, nil)
		w.login()
		w.as.Expire()
		w.mustCall()
		if g := w.grant(); g.Client.Method != method || g.Client.Secret.IsZero() {
			t.Errorf("client %s with %s", g.Client.ID, g.Client.Method)
		}
	}
}

func TestLocalhostOnly(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"no-loopback-ip"}}, nil)
	for range 2 {
		p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
		if err != nil || !strings.HasPrefix(p.RedirectURI, "http://localhost:") {
			t.Fatalf("%+v, %v", p, err)
		}
		if _, err := w.consent(p); err != nil {
			t.Error(err)
		}
	}
	if n := len(w.as.Requests(fake.EventRegister, "")); n != 2 {
		t.Errorf("%d registrations, want the refused one and one more", n)
	}
}

// A server that forgets its clients between logins: the next login registers again,
// and nothing else is lost.
func TestForgottenClient(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	w.as.ForgetClients()
	w.as.Expire()
	wantErr(t, w.call(t.Context()), ErrNeedsLogin, "invalid_client")
	if g := w.grant(); g == nil || g.Ended != nil {
		t.Error("the grant was ended by something else than invalid_grant")
	}
	w.login()
	w.mustCall()

	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	cb := w.answer(p)
	w.as.ForgetClients()
	if _, err := w.e.Complete(t.Context(), cb); !errors.Is(err, ErrRefused) {
		t.Errorf("with a forgotten client: %v", err)
	}
	w.login()
	if n := len(w.as.Requests(fake.EventRegister, "")); n != 3 {
		t.Errorf("%d registrations", n)
	}
	if _, err := w.tryLogin(&LoginOptions{FreshClient: true}); err != nil || len(w.as.Requests(fake.EventRegister, "")) != 4 {
		t.Errorf("a fresh client on request: %v", err)
	}
}

func TestRegistrationRefused(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"register-status=500"}}, nil)
	_, err := w.tryLogin(nil)
	if !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "canary-body") {
		t.Errorf("error %v", err)
	}
}

// Clients belong to their issuer: another one never sees them.
func TestClientsAreBoundToTheirIssuer(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	first := w.grant().Client.ID
	second := fake.NewAuth(&fake.AuthOptions{Name: "as2"})
	second.Serve("https://as2.example")
	w.net.add("as2.example", second.Handler())
	w.prot.Servers = []string{second.Issuer()}
	w.as.Expire()
	err := w.call(t.Context())
	wantErr(t, err, ErrNeedsLogin, "as2.example")
	if w.tokens("refresh_token") != 0 {
		t.Error("the grant was renewed after the server moved away")
	}
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.AuthorizeURL, first) || p.Issuer != second.Issuer() {
		t.Errorf("the first issuer's client at the second: %s", p.AuthorizeURL)
	}
	for _, e := range second.Ledger().Entries() {
		if strings.Contains(string(e.Params), first) || strings.Contains(string(e.Params), "rt-") {
			t.Errorf("credentials of the first issuer reached the second: %+v", e)
		}
	}
	// A configured issuer that the server no longer names is an error, not a switch.
	w.srv.OAuth.Issuer = w.as.Issuer()
	if _, err := w.e.Begin(t.Context(), w.a, w.srv, nil); err == nil || !strings.Contains(err.Error(), "oauth.issuer") {
		t.Errorf("error %v", err)
	}
}
