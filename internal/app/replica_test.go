package app

import (
	"bytes"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// Gateways that start at the same moment agree on one key.
func TestGatewayKey(t *testing.T) {
	store := vault.NewMemory()
	keys := make([][]byte, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			h := &App{store: store}
			var err error
			if keys[i], err = gatewayKey(t.Context(), h.store); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != gatewayKeyLen || !bytes.Equal(k, keys[0]) {
			t.Fatalf("keys differ: %x and %x", k, keys[0])
		}
	}
}

// A replica that holds an old token takes the newer one from the store, and renews that
// one too when it is refused: nobody is asked to log in.
func TestTwoTokensRefused(t *testing.T) {
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	store, cfg := vault.NewMemory(), &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{protected(t, "notes", as)}}
	one, other := openedOn(t, store, cfg), openedOn(t, store, cfg)
	call := func(h *App) {
		t.Helper()
		if _, err := h.Call(t.Context(), "notes", "echo", []byte(`{"text":"x"}`), nil); err != nil {
			t.Error(err)
		}
	}
	login(t, one, as, cfg.Servers[0])
	for range 3 {
		call(other) // so that it has the token, for a moment without asking the store
		as.Expire()
		call(one)
		as.Expire()
		call(other)
	}
}
