package need

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestProgramsAreFound(t *testing.T) {
	for name, path := range map[string]string{"chromium": Chromium(t), "tmux": Tmux(t)} {
		if !filepath.IsAbs(path) {
			t.Errorf("%s: %q", name, path)
		}
	}
}

func TestProgramsAreSaidToBeMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if path, err := onPath("tmux"); !errors.Is(err, ErrMissing) {
		t.Errorf("onPath = %q, %v; want ErrMissing", path, err)
	}
}
