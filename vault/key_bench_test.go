package vault_test

import (
	"bytes"
	"testing"

	"github.com/usher-mcp/usher/vault"
)

// BenchmarkSealed is what sealing costs on top of the store.
func BenchmarkSealed(b *testing.B) {
	data := bytes.Repeat([]byte("x"), 2000)
	store := vault.NewMemory()
	defer func() { _ = store.Close() }() // memory
	keys := vault.NewKeys(store, vault.KeyOptions{Setting: "env:K", Env: func(string) (string, bool) { return keyA, true }})
	key := grantKey("a")
	sealed, err := keys.Seal(b.Context(), key, data)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("seal", func(b *testing.B) {
		for b.Loop() {
			if _, err := keys.Seal(b.Context(), key, data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if _, err := keys.Open(b.Context(), key, sealed); err != nil {
				b.Fatal(err)
			}
		}
	})
}
