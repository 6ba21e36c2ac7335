package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/usher-mcp/usher/config"
)

// origin is file:line, as short as it can be from here.
func (a *factory) origin(o config.Origin) string {
	if o.File == "" {
		return "–"
	}
	return fmt.Sprintf("%s:%d", a.short(o.File), o.Line)
}

// short writes a path as seen from here: relative below the working directory,
// with ~ below the home directory.
func (a *factory) short(path string) string {
	sys := a.io.System.WithDefaults()
	if rel, ok := below(sys.Workdir, path); ok {
		return rel
	}
	if rel, ok := below(sys.Home, path); ok {
		return filepath.Join("~", rel)
	}
	return path
}

func below(dir, path string) (string, bool) {
	if dir == "" || !filepath.IsAbs(path) {
		return "", false
	}
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// shortError is err with the path of its file shortened.
func (a *factory) shortError(err error) error {
	var place *config.Error
	if !errors.As(err, &place) {
		return err
	}
	short := *place
	short.File = a.short(place.File)
	return &short
}
