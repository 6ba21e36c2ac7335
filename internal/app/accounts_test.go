package app

import (
	"errors"
	"fmt"
	"testing"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// haveLogin stores a login, so that the account exists.
func haveLogin(t *testing.T, h *App, principal, account string) {
	t.Helper()
	srv, _ := h.hosted.Server(auth.ParseAccount("", account).Server)
	key := vault.Key{Kind: vault.KindGrant, Principal: principal, Name: account}
	if _, err := h.store.Put(t.Context(), key, []byte(`{"generation":1,"flow":"browser","server_url":"`+srv.URL+`","resource":"`+srv.URL+`","access_token":"t","token_type":"Bearer"}`), 0); err != nil {
		t.Fatal(err)
	}
}

// TestLabelsExistOnlyWithALogin: a label that nobody logged in with is an unknown
// server, and nothing is kept for it; after a logout nothing is left of an account.
func TestLabelsExistOnlyWithALogin(t *testing.T) {
	h := opened(t, &config.Config{}, "math")
	for i := range 100 {
		if _, err := h.Tools(t.Context(), fmt.Sprintf("math@invented%d", i)); !errors.Is(err, host.ErrUnknownServer) {
			t.Fatalf("an invented label: %v", err)
		}
	}
	if n := len(h.hosted.Status().Servers); n != 1 {
		t.Errorf("%d connections are kept for invented labels", n-1)
	}
	haveLogin(t, h, "local", "math@work")
	h.logins.Accounts().Expire("local")
	if _, err := h.Tools(t.Context(), "math@work"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.gate.Tools(t.Context(), policy.As("eve"), host.Key{Server: "math", Account: "work"}); !errors.Is(err, host.ErrUnknownServer) {
		t.Errorf("an account of another principal: %v", err)
	}
	if _, err := h.Logins().Logout(t.Context(), auth.Account{Server: "math", Label: "work"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Tools(t.Context(), "math@work"); !errors.Is(err, host.ErrUnknownServer) {
		t.Errorf("after the logout: %v", err)
	}
	for _, s := range h.hosted.Status().Servers {
		if s.Account != "" {
			t.Errorf("%+v is left", s)
		}
	}
	for _, kind := range []string{vault.KindPin, vault.KindCatalog} {
		left, err := h.store.List(t.Context(), kind, "local")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range left {
			if r.Name == "math@work" {
				t.Errorf("the %s record of the account is left", kind)
			}
		}
	}
}
