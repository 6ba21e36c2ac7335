package console

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/usher-mcp/usher/status"
)

// ago says how long something is past.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return "never"
	}
	if d := now.Sub(then); d >= 5*time.Second {
		return status.Approx(d) + " ago"
	}
	return "just now"
}

// took is how long a call lasted.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "< 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return status.Approx(d)
}

// size is a number of bytes as people say it.
func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// plain shows foreign text as it is: what would not show, or would turn its
// direction around, becomes a visible escape. Line breaks and tabs stay.
func plain(s string) string {
	strange := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar)
	}
	if strings.IndexFunc(s, strange) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if strange(r) {
			fmt.Fprintf(&b, "\\u{%04x}", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cutText shortens a text to about n bytes, at a rune.
func cutText(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	return strings.ToValidUTF8(s[:n], ""), true
}

// firstLine is the first line of a text, shortened.
func firstLine(s string, n int) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	line, cut := cutText(line, n)
	if cut || more {
		line += " …"
	}
	return plain(line)
}
