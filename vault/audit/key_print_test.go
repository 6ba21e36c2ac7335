package audit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/vault"
)

// Printing or logging an audit key shows its id only.
func TestKeyIsNotPrinted(t *testing.T) {
	store := vault.NewMemory()
	defer func() { _ = store.Close() }() // memory
	key, err := LoadKey(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", key)
	for _, text := range []string{
		fmt.Sprintf("%v", key), fmt.Sprintf("%+v", key), fmt.Sprintf("%#v", key), fmt.Sprintf("%s", key), fmt.Sprintf("%x", key), log.String(),
	} {
		for _, form := range []string{string(key.key), fmt.Sprintf("%x", key.key), fmt.Sprintf("%v", key.key)} {
			if strings.Contains(text, form) || !strings.Contains(text, key.id) {
				t.Errorf("%s", text)
			}
		}
	}
}
