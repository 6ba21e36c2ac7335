package app

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// With a store in memory nothing is written to disk, not even what servers wrote to
// standard error.
func TestMemoryStoreWritesNothing(t *testing.T) {
	t.Run("plain", func(t *testing.T) { checkWritesNothing(t, vault.NewMemory()) })
	t.Run("sealed", func(t *testing.T) {
		store := vault.NewMemory()
		checkWritesNothing(t, keys.Sealed(store, keys.New(store, keys.Options{
			Setting: "env:KEY", Env: func(string) (string, bool) { return "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", true },
		})))
	})
}

func checkWritesNothing(t *testing.T, store vault.Store) {
	t.Helper()
	home := t.TempDir()
	h, err := Open(t.Context(), &Options{
		Config: &config.Config{Usher: config.DefaultSettings()}, Store: store,
		Load: config.LoadOptions{System: config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) {
			return home, name == "USHER_HOME"
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Servers().Spawn(t.Context(), started(t, "math"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Call(t.Context(), "math", "add", []byte(`{"a":1,"b":2}`), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(h.logs.Of(host.Key{Principal: host.Local, Server: "math"}), "a line"); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
		if path != home {
			t.Errorf("%s was written", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
