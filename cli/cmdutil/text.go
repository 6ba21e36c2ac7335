package cmdutil

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Indent puts by before each line.
func Indent(text, by string) string {
	return by + strings.ReplaceAll(text, "\n", "\n"+by)
}

// ShellWord quotes a word for a POSIX shell where it needs to be.
func ShellWord(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@…,", r)
	}) < 0
	if plain && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Count is a number with its noun.
func Count(n int, thing string) string { return CountOf(n, thing, thing+"s") }

// CountOf is "1 thing" or "2 things".
func CountOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// MaxNameColumn bounds the column of server names on a terminal.
const MaxNameColumn = 28

// Clean makes text of a server safe to show: escape sequences, control characters
// and characters that reorder or hide text become visible. Line breaks and tabs
// stay.
func Clean(s string) string {
	if !strings.ContainsFunc(s, IsHostile) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !IsHostile(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// CleanLine is clean for one line: line breaks become spaces.
func CleanLine(s string) string {
	return Clean(strings.Join(strings.Fields(s), " "))
}

// IsHostile reports whether a terminal could act on r, or a reader be deceived by it.
func IsHostile(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Cf, r) && r != 0x200d || unicode.Is(unicode.Co, r) || r >= 0xe0000 && r <= 0xe0fff
}

// FirstLine returns the first sentence or line of a description, cut to n columns.
func FirstLine(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = CleanLine(s)
	if i := strings.Index(s, ". "); i > 0 {
		s = s[:i+1]
	}
	return Truncate(s, n)
}

// Truncate shortens s to n columns.
func Truncate(s string, n int) string {
	if n < 2 || TextWidth(s) <= n {
		return s
	}
	w := 0
	for i, r := range s {
		if w += runeColumns(r); w > n-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// TextWidth is how wide s is on a terminal.
func TextWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r) || r == 0x200d || r >= 0xfe00 && r <= 0xfe0f:
		return 0
	case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 ||
		r >= 0x1f300 && r <= 0x1f64f || r >= 0x1f900 && r <= 0x1f9ff || r >= 0x20000):
		return 2
	}
	return 1
}

// Table writes rows in columns that are as wide as they must be. The last column
// is cut to the width on a terminal.
type Table struct {
	Head []string
	Rows [][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write prints the table; width 0 means not to cut.
func (t *Table) Write(w io.Writer, width int) {
	wide := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, cell := range row {
			wide[i] = max(wide[i], TextWidth(cell))
		}
	}
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		var b strings.Builder
		used := 0
		for i, cell := range row {
			if i == len(row)-1 {
				if width > 0 {
					cell = Truncate(cell, max(width-used, 20))
				}
				b.WriteString(cell)
				break
			}
			b.WriteString(cell + strings.Repeat(" ", wide[i]-TextWidth(cell)+2))
			used += wide[i] + 2
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// TableWidth is where tables are cut: only on a terminal.
func (f *Factory) TableWidth() int {
	if f.IO.OutTTY {
		return f.IO.Width
	}
	return 0
}
