package policy

import (
	"strings"

	"github.com/usher-mcp/usher/internal/lookalike"
)

// fold brings a name into the form that deny rules compare: without case,
// diacritics, invisible characters, percent escapes and backslashes, with
// look-alikes replaced by the ASCII letters they imitate, and with one sign for
// all separators. It is generous on purpose: a deny rule that catches a name too
// many does no harm, one that misses a spelling does.
func fold(name string) string {
	return separators.Replace(strings.Trim(lookalike.Skeleton(unescape(name)), " ."))
}

// foldPattern is fold for the literal parts of a pattern, whose ends are not the
// ends of a name.
func foldPattern(literal string) string { return separators.Replace(lookalike.Skeleton(literal)) }

var separators = strings.NewReplacer("-", "_", ".", "_", " ", "_", "/", "_", ":", "_")

// unescape undoes what a careless reader would: %5f is an underscore, and a
// backslash says nothing.
func unescape(s string) string {
	if !strings.ContainsAny(s, `%\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		if s[i] != '\\' {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
