package need

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestPackage(t *testing.T) {
	if dir := Package(t, "oidc-provider"); !filepath.IsAbs(dir) {
		t.Errorf("Package = %q, not absolute", dir)
	}
	if dir, err := FindPackage("no-such-package"); !errors.Is(err, ErrMissing) {
		t.Errorf("FindPackage of a missing one = %q, %v; want ErrMissing", dir, err)
	}
}
