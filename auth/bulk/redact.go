package bulk

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

const hidden = "…"

// maxDetail is the longest text that is shown of an error.
const maxDetail = 600

const secretNames = `code|state|access_token|refresh_token|id_token|token|client_secret|secret|password|passwd|code_verifier|device_code|client_assertion|assertion|subject_token|api_key|apikey`

type secretForm struct {
	find    *regexp.Regexp
	replace string
}

var secretForms = sync.OnceValue(func() []secretForm {
	return []secretForm{
		{regexp.MustCompile(`(?i)"(` + secretNames + `)"(\s*:\s*)"(?:[^"\\]|\\.)*"?`), `"$1"$2"` + hidden + `"`},
		{regexp.MustCompile(`(?i)\b(` + secretNames + `)(=|%3d)[^&;\s"'<>]+`), `$1$2` + hidden},
		{regexp.MustCompile(`(?i)\b(bearer|basic|dpop)(\s+)[a-z0-9._~+/=-]{16,}`), `$1$2` + hidden},
		{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)*`), hidden},
		{regexp.MustCompile(`(://)[^/\s@"']+@`), `$1` + hidden + `@`},
	}
})

// redact makes the text of an error fit to be shown. The engine keeps secrets out of
// its errors; this is the second lock, for texts that come from elsewhere. Known are
// secrets of the login at hand, hidden wherever they stand.
func redact(text string, known ...string) string {
	for _, k := range known {
		if len(k) >= 6 {
			text = strings.ReplaceAll(text, k, hidden)
		}
	}
	for _, f := range secretForms() {
		text = f.find.ReplaceAllString(text, f.replace)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxDetail {
		text = string(runes[:maxDetail]) + hidden
	}
	return text
}
