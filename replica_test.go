package usher

import (
	"bytes"
	"sync"
	"testing"

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
