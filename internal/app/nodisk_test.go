package app

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/vault"
)

// With a store in memory nothing is written to disk, not even what servers wrote to
// standard error.
func TestMemoryStoreWritesNothing(t *testing.T) {
	home := t.TempDir()
	h, err := Open(t.Context(), &Options{
		Config: &config.Config{Usher: config.DefaultSettings()}, Store: vault.NewMemory(),
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
