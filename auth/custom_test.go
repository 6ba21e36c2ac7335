package auth

import (
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// custom configures the endpoints without discovery and without an issuer.
func custom(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, &fake.AuthOptions{Clients: []fake.AuthClient{{ID: "mine"}}}, nil)
	w.srv.OAuth = &config.OAuth{
		Discovery:             config.Discovery{Mode: "off"},
		AuthorizationEndpoint: w.as.Issuer() + "/authorize", TokenEndpoint: w.as.Issuer() + "/token",
		DeviceAuthorizationEndpoint: w.as.Issuer() + "/device", ClientID: "mine",
	}
	return w
}

// Without discovery and without oauth.issuer, a server that names itself in its answer
// can be logged in to; one that names another origin is refused, and the error says
// what to set.
func TestIssWithoutConfiguredIssuer(t *testing.T) {
	w := custom(t)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	cb := w.answer(p)
	if !cb.HasIss {
		t.Fatal("the server does not name itself")
	}
	for _, iss := range []string{"https://evil.example", "", "https://as.example@evil.example", "https://as.example:444", "http://as.example"} {
		bad := cb
		bad.Iss = iss
		_, err := w.e.Complete(t.Context(), bad)
		wantErr(t, err, ErrIssuer, "oauth.issuer")
	}
	if _, err := w.e.Complete(t.Context(), cb); err != nil {
		t.Fatal(err)
	}
	w.mustCall()
}

// A server that has a device endpoint only says so.
func TestOnlyDeviceEndpoint(t *testing.T) {
	w := custom(t)
	w.srv.OAuth.AuthorizationEndpoint = ""
	_, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	wantErr(t, err, ErrNoFlow, "device code")
	if _, err := w.e.BeginDevice(t.Context(), w.a, w.srv, nil); err != nil {
		t.Error(err)
	}
}

// Logins of servers that were removed are pruned, those of others stay, and those of
// another principal too.
func TestPruneRemoved(t *testing.T) {
	w := newWorld(t, nil, nil)
	for _, a := range []Account{{Server: "srv"}, {Server: "gone"}, {Server: "gone", Label: "work"}, {Principal: "else", Server: "gone"}} {
		if _, err := w.e.Begin(t.Context(), a, w.srv, nil); err != nil {
			t.Fatal(err)
		}
	}
	n, err := w.e.PruneRemoved(t.Context(), vault.Local, func(server string) bool { return server == "srv" })
	if left, _ := w.e.Pendings(t.Context(), ""); err != nil || n != 2 || len(left) != 2 {
		t.Errorf("%d pruned, %d left, %v; want 2 and 2", n, len(left), err)
	}
}
