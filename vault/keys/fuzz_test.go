package keys

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/usher-mcp/usher/vault"
)

// Whatever stands in a store, opening it never crashes and never gives data that
// was not sealed.
func FuzzOpen(f *testing.F) {
	store := vault.NewMemory()
	f.Cleanup(func() { _ = store.Close() }) // memory
	keys := New(store, Options{Setting: "env:K", Env: func(string) (string, bool) {
		return "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", true
	}})
	seal, err := keys.Sealing(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	secret, plain := vault.LocalKey(vault.KindGrant, "a"), vault.LocalKey(vault.KindToken, "a")
	sealed, signed := seal(secret, 1, []byte("token")), seal(plain, 1, []byte("token"))
	f.Add(sealed)
	f.Add(signed)
	f.Add(signed[:macHeader])
	f.Add([]byte("usa\x02"))
	f.Add(sealed[:sealHeader])
	f.Add([]byte("ush\x01"))
	f.Add([]byte("ush\x02 something of the future, long enough to be looked at"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for key, good := range map[vault.Key][]byte{secret: sealed, plain: signed} {
			text, err := keys.Open(t.Context(), vault.Record{Key: key, Version: 1, Data: data})
			if err == nil && !bytes.Equal(data, good) {
				t.Errorf("opened what was never sealed: %q", text)
			}
		}
	})
}

// A ring of any bytes is refused or read, and never crashes.
func FuzzRing(f *testing.F) {
	master := newKey()
	r, err := newRing(wrapAuthentic, madeOf("env:K", master).lock, master, now())
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":1,"current":"00","keys":[{"id":"xx"}],"locks":[{}]}`))
	f.Add([]byte(`{"format":1,"current":"0011223344556677","keys":[{"id":"0011223344556677","wrapped":{"a":"AAAA"}}],"locks":[{"id":"a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRing(vault.Record{Key: ringKeyName(), Data: data})
		if err != nil {
			return
		}
		if _, err := r.open(1, lockID(master), master); err == nil && r.Current == "" {
			t.Error("opened a ring without a current key")
		}
	})
}

// Only 32 bytes make a key, however they are written.
func FuzzParseKey(f *testing.F) {
	key := newKey()
	f.Add(key)
	f.Add([]byte(encodeKey(key)))
	f.Add([]byte(" " + encodeKey(key) + "\n"))
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := parseKey(text); err == nil && len(got) != keySize {
			t.Errorf("a key of %d bytes", len(got))
		}
	})
}
