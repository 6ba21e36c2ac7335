//go:build unix

package sqlstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/vault"
)

func TestExposedFilesAreRefused(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(path string) error
		hint  string
	}{
		{"readable file", func(p string) error { return os.Chmod(p, 0o640) }, "chmod 600"},
		{"writable file", func(p string) error { return os.Chmod(p, 0o602) }, "chmod 600"},
		{"log", func(p string) error { return os.WriteFile(p+"-wal", nil, 0o644) }, "chmod 600"},
		{"directory", func(p string) error { return os.Chmod(filepath.Dir(p), 0o770) }, "chmod 700"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := tempStore(t)
			if err := openPath(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			if err := tt.spoil(path); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), path, nil)
			if !errors.Is(err, vault.ErrExposed) || !strings.Contains(err.Error(), tt.hint) {
				t.Errorf("Open = %v; want ErrExposed and the hint %q", err, tt.hint)
			}
		})
	}
}

// A directory that only others can write: tried by a child without privileges,
// because root may write everywhere.
func TestReadOnlyDirectory(t *testing.T) {
	dir, err := os.MkdirTemp("", "usher-readonly-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	cmd, out, begin := child(t, "readonly", filepath.Join(dir, "usher.db"))
	begin()
	var said []string
	for out.Scan() {
		said = append(said, out.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(said, "\n")
	if !strings.HasPrefix(text, "unavailable: ") || !strings.Contains(text, dir) || !strings.Contains(text, "mode of the directory") {
		t.Errorf("the child said %q; want ErrUnavailable that names the directory and the way out", text)
	}
}
