// Package visible writes foreign text so that what a terminal or a page shows is what is
// there.
//
//	visible.Quote(s) // in quotes
//	visible.Text(s)  // in running prose
//
// It decides which characters cannot be seen ([Invisible]); names that look like other
// names are internal/lookalike's.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote quotes s so that what a terminal or a page shows is what is there:
// control characters, direction overrides, zero-width, blank and other
// invisible characters, invalid bytes, quotes and backslashes come out as
// escapes. Two different strings never look the same for lack of an escape.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case !unicode.IsPrint(r) || Invisible(r):
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	b.WriteByte('"')
	return b.String()
}

// Text is Quote without the quotes, for text in running prose. Spaces at
// the ends cannot be seen in it.
func Text(s string) string {
	q := Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// Invisible holds the characters that unicode.IsPrint lets through although
// they show as nothing or as a blank.
func Invisible(r rune) bool {
	switch {
	case r == 0x034F, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5:
	case r == 0x2800, r == 0x3164, r == 0xFFA0, r == 0xFFFC:
	case r >= 0x180B && r <= 0x180F, r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF:
	default:
		return unicode.Is(unicode.Cf, r)
	}
	return true
}

// Suspicious reports whether s holds something a reader cannot see: used to
// warn of a stray character pasted into a name or an address.
func Suspicious(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || Invisible(r) || !unicode.IsPrint(r) {
			return true
		}
	}
	return false
}
