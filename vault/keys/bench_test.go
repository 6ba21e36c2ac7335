package keys_test

import (
	"bytes"
	"testing"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// BenchmarkSealed is what sealing costs on top of the store.
func BenchmarkSealed(b *testing.B) {
	data := bytes.Repeat([]byte("x"), 2000)
	store := vault.NewMemory()
	defer func() { _ = store.Close() }() // memory
	k := keys.New(store, keys.Options{Setting: "env:K", Env: func(string) (string, bool) { return keyA, true }})
	for name, key := range map[string]vault.Key{"secret": grantKey("a"), "plain": vault.LocalKey(vault.KindPin, "a")} {
		seal, err := k.Sealing(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		rec := vault.Record{Key: key, Version: 1, Data: seal(key, 1, data)}
		b.Run(name+"/seal", func(b *testing.B) {
			for b.Loop() {
				seal, err := k.Sealing(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				seal(key, 1, data)
			}
		})
		b.Run(name+"/open", func(b *testing.B) {
			for b.Loop() {
				if _, err := k.Open(b.Context(), rec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
