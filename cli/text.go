package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes text of a server safe to show: escape sequences, control characters
// and characters that reorder or hide text become visible. Line breaks and tabs
// stay.
func clean(s string) string {
	if !strings.ContainsFunc(s, hostile) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hostile(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// cleanLine is clean for one line: line breaks become spaces.
func cleanLine(s string) string {
	return clean(strings.Join(strings.Fields(s), " "))
}

func hostile(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Cf, r) && r != 0x200d || unicode.Is(unicode.Co, r) || r >= 0xe0000 && r <= 0xe0fff
}

// firstLine returns the first sentence or line of a description, cut to n columns.
func firstLine(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = cleanLine(s)
	if i := strings.Index(s, ". "); i > 0 {
		s = s[:i+1]
	}
	return cut(s, n)
}

// cut shortens s to n columns.
func cut(s string, n int) string {
	if n < 2 || columns(s) <= n {
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

// columns is how wide s is on a terminal.
func columns(s string) int {
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

// table writes rows in columns that are as wide as they must be. The last column
// is cut to the width on a terminal.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table; width 0 means not to cut.
func (t *table) write(w io.Writer, width int) {
	wide := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			wide[i] = max(wide[i], columns(cell))
		}
	}
	for _, row := range append([][]string{t.head}, t.rows...) {
		var b strings.Builder
		used := 0
		for i, cell := range row {
			if i == len(row)-1 {
				if width > 0 {
					cell = cut(cell, max(width-used, 20))
				}
				b.WriteString(cell)
				break
			}
			b.WriteString(cell + strings.Repeat(" ", wide[i]-columns(cell)+2))
			used += wide[i] + 2
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
