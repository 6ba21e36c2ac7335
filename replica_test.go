package usher

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// Gateways that start at the same moment agree on one key.
func TestGatewayKey(t *testing.T) {
	store := vault.NewMemory()
	keys := make([][]byte, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			h := &Host{store: store}
			var err error
			if keys[i], err = h.gatewayKey(t.Context()); err != nil {
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

// A singleton is run by one host at a time: the others say where, and take over when
// it ends there.
func TestSingletonRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := vault.NewMemory()
		a, b := &Host{store: store}, &Host{store: store}
		srv := config.Server{Name: "db"}
		release, err := a.singleton(t.Context(), srv)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // it is renewed
		_, err = b.singleton(t.Context(), srv)
		if err == nil || !strings.Contains(err.Error(), "usher stop db") {
			t.Fatalf("a second one: %v", err)
		}
		other, err := b.singleton(t.Context(), config.Server{Name: "other"})
		if err != nil {
			t.Fatalf("another server: %v", err)
		}
		other()
		release()
		release()
		if release, err = b.singleton(t.Context(), srv); err != nil {
			t.Fatalf("after the first has ended: %v", err)
		}
		release()
	})
}
