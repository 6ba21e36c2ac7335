package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

// Somebody who can write the database but does not have the key mints no token and
// widens none.
func TestDatabaseWriterMintsNoToken(t *testing.T) {
	dir, opt := home(t, nil)
	h := open(t, opt)
	ctx := t.Context()
	text, token, err := h.Frontend().Tokens().Mint(ctx, authn.Mint{Name: "narrow", Servers: []string{"one"}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(h *App, text string) error {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		_, err := h.Frontend().Tokens().Authenticate(ctx, r)
		return err
	}
	if err := ask(h, text); err != nil {
		t.Fatal(err)
	}
	below, err := sqlstore.Open(ctx, filepath.Join(dir, "usher.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = below.Close() }() // only a test's
	forged := map[string]any{
		"id": "00112233aabbccdd", "principal": vault.Local,
		"hash": "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b", // of "secret"
	}
	data, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := below.Put(ctx, tokenKey("00112233aabbccdd"), data, 0); err != nil {
		t.Fatal(err)
	}
	old, err := below.Get(ctx, tokenKey(token.ID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := below.Put(ctx, tokenKey(token.ID), []byte(`{"id":"`+token.ID+`"}`), old.Version); err != nil {
		t.Fatal(err)
	}
	for who, h := range map[string]*App{"running": h, "new": open(t, opt)} {
		for what, text := range map[string]string{"a forged token": "usher_00112233aabbccdd_secret", "a changed token": text} {
			if refused, ok := errors.AsType[*authn.RefusedError](ask(h, text)); !ok || refused.Status != http.StatusUnauthorized {
				t.Errorf("%s process, %s: %v, want 401", who, what, refused)
			}
		}
		if list, err := h.Frontend().Tokens().List(ctx); err != nil || len(list) != 0 {
			t.Errorf("%s process lists %v, %v; want none", who, list, err)
		}
	}
	if err := h.Frontend().Tokens().Revoke(ctx, "00112233aabbccdd"); err != nil {
		t.Errorf("revoke the forged token: %v", err)
	}
}
