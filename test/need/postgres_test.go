package need

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestPostgresIsSaidToBeMissing(t *testing.T) {
	t.Setenv(postgresVariable, "")
	if _, err := FindPostgres(); !errors.Is(err, ErrMissing) {
		t.Errorf("FindPostgres = %v, want ErrMissing", err)
	}
	t.Setenv(postgresVariable, "postgres://x")
	if url, err := FindPostgres(); err != nil || url != "postgres://x" {
		t.Errorf("FindPostgres = %q, %v", url, err)
	}
}

func TestStraceIsSaidToBeMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := FindStrace(); !errors.Is(err, ErrMissing) {
		t.Errorf("FindStrace = %v, want ErrMissing", err)
	}
}

func TestStraceIsFound(t *testing.T) {
	if path := Strace(t); !filepath.IsAbs(path) {
		t.Errorf("Strace = %q", path)
	}
}
