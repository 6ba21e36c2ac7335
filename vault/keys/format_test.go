package keys

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/vault"
)

// No key comes out when what holds it is printed or logged.
func TestKeysAreNotPrinted(t *testing.T) {
	store := vault.NewMemory()
	defer func() { _ = store.Close() }() // memory
	const encoded = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	keys := New(store, Options{Setting: "env:K", Env: func(string) (string, bool) { return encoded, true }})
	if _, err := keys.Sealing(t.Context()); err != nil {
		t.Fatal(err)
	}
	ring := keys.opened()
	master := []byte("0123456789abcdef0123456789abcdef")
	secrets := [][]byte{master, ring.raw[ring.current], ring.macs[ring.current]}
	for name, v := range map[string]any{"keys": keys, "ring": ring, "made": madeOf("env:K", master)} {
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		for how, text := range map[string]string{
			"%v": fmt.Sprintf("%v", v), "%+v": fmt.Sprintf("%+v", v), "%#v": fmt.Sprintf("%#v", v), "%s": fmt.Sprintf("%s", v), "%x": fmt.Sprintf("%x", v), "slog": log.String(),
		} {
			for _, secret := range secrets {
				for _, form := range []string{string(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%v", secret)} {
					if strings.Contains(text, form) {
						t.Errorf("%s with %s: %s", name, how, text)
					}
				}
			}
		}
	}
}
