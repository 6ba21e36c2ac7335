package app

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/vault"
)

// A store of an unknown scheme is refused before anything is made, also when a
// variable names it, and its password is not shown.
func TestStoreOfUnknownScheme(t *testing.T) {
	for _, store := range []string{"postgre://ann:hunter2@db/usher", "${env:DB}"} {
		dir, opt := home(t, map[string]string{"DB": "postgre://ann:hunter2@db/usher"})
		opt.Config.Usher.Store = store
		h, err := Open(t.Context(), opt)
		if err == nil {
			_ = h.Close() // the test has failed
		}
		if !errors.Is(err, vault.ErrInvalid) || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "usher.store") {
			t.Errorf("%s: %v, want ErrInvalid that names usher.store and no password", store, err)
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("%s: files were made: %v, %v", store, made, err)
		}
	}
}
