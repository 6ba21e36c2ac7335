package app

import (
	"errors"
	"testing"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// No principal finishes a login that another one began, with an account of its choice:
// the code is not exchanged.
func TestCompleteIsForThePrincipalOnly(t *testing.T) {
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{protected(t, "notes", as)}}
	h := openedOn(t, vault.NewMemory(), cfg)
	l := h.logins.ForAgents()
	all := func(string, string) bool { return true }
	begun, err := l.Begin(t.Context(), host.Key{Principal: "alice", Server: "notes", Account: "work"})
	if err != nil {
		t.Fatal(err)
	}
	back, err := as.Consent(t.Context(), begun.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Complete(t.Context(), "mallory", all, back.String()); !errors.Is(err, auth.ErrUnknownState) {
		t.Errorf("another principal: %v", err)
	}
	narrow := func(_, account string) bool { return account == "other" }
	if _, err := l.Complete(t.Context(), "alice", narrow, back.String()); !errors.Is(err, auth.ErrUnknownState) {
		t.Errorf("outside of the scope: %v", err)
	}
	if n := len(as.Requests(fake.EventToken, "")); n != 0 {
		t.Fatalf("%d codes were exchanged", n)
	}
	if done, err := l.Complete(t.Context(), "alice", all, back.String()); err != nil || done.State != "done" {
		t.Errorf("its own principal: %+v, %v", done, err)
	}
}
