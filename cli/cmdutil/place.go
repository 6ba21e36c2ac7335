package cmdutil

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/usher-mcp/usher/config"
)

// Origin is file:line, as short as it can be from here.
func Origin(f *Factory, o config.Origin) string {
	if o.File == "" {
		return "–"
	}
	return fmt.Sprintf("%s:%d", f.Short(o.File), o.Line)
}

// Short writes a path as seen from here: relative below the working directory,
// with ~ below the home directory.
func (f *Factory) Short(path string) string {
	sys := f.IO.System.WithDefaults()
	if rel, ok := Below(sys.Workdir, path); ok {
		return rel
	}
	if rel, ok := Below(sys.Home, path); ok {
		return filepath.Join("~", rel)
	}
	return path
}

// Below returns path relative to dir when it lies in it.
func Below(dir, path string) (string, bool) {
	if dir == "" || !filepath.IsAbs(path) {
		return "", false
	}
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// ShortError is err with the path of its file shortened.
func (f *Factory) ShortError(err error) error {
	var place *config.Error
	if !errors.As(err, &place) {
		return err
	}
	short := *place
	short.File = f.Short(place.File)
	return &short
}
