package config

import (
	"github.com/usher-mcp/usher/config/jsonc"
	"github.com/usher-mcp/usher/internal/suggest"
	"github.com/usher-mcp/usher/internal/visible"
)

// Error is a mistake in a file, with the place where it stands.
type Error = jsonc.Error

// Warning is something that was ignored or looks wrong but does no harm.
type Warning = jsonc.Warning

// Visible quotes s so that what a terminal or a page shows is what is there.
func Visible(s string) string { return visible.Quote(s) }

// Unquoted is Visible without the quotes, for text in running prose.
func Unquoted(s string) string { return visible.Text(s) }

// Nearest returns up to three candidates that differ from name by a slip of the
// fingers, the closest first.
func Nearest(name string, candidates []string) []string { return suggest.Nearest(name, candidates) }
