package wire

import (
	"strings"

	"github.com/usher-mcp/usher/internal/limit"
)

// Challenge is one authentication challenge of a WWW-Authenticate header.
type Challenge struct {
	Scheme string            // lower case
	Params map[string]string // names in lower case
}

// ParseChallenges reads WWW-Authenticate values (RFC 9110 §11.6.1). It is lenient:
// what cannot be read is left out, since a login must not fail on a header.
func ParseChallenges(values []string) []Challenge {
	var out []Challenge
	for _, v := range values {
		p := challengeParser{s: v}
		for p.skip(); p.s != ""; p.skip() {
			word := p.token()
			if word == "" {
				p.s = p.s[1:]
				continue
			}
			p.space()
			if strings.HasPrefix(p.s, "=") && len(out) > 0 {
				set(out[len(out)-1].Params, strings.ToLower(word), p.value())
				continue
			}
			if len(out) == limit.Challenges {
				return out
			}
			out = append(out, Challenge{Scheme: strings.ToLower(word), Params: map[string]string{}})
			p.credentials()
		}
	}
	return out
}

// set leaves out what is too much.
func set(params map[string]string, name, value string) {
	if _, ok := params[name]; ok || len(params) < limit.ChallengeParams {
		params[name] = value
	}
}

type challengeParser struct{ s string }

// skip passes over commas and space between parts.
func (p *challengeParser) skip() { p.s = strings.TrimLeft(p.s, " \t,") }

func (p *challengeParser) space() { p.s = strings.TrimLeft(p.s, " \t") }

func (p *challengeParser) token() string { return p.until(" \t,=\"") }

// until takes everything before the first of the ends.
func (p *challengeParser) until(ends string) string {
	n := strings.IndexAny(p.s, ends)
	if n < 0 {
		n = len(p.s)
	}
	t := p.s[:n]
	p.s = p.s[n:]
	return t
}

// credentials drops a bare credential (token68) that stands in place of params.
func (p *challengeParser) credentials() {
	before := p.s
	if word := p.token(); word != "" {
		if rest := strings.TrimLeft(p.s, "="); rest == "" || rest[0] == ',' {
			p.s = rest
			return
		}
	}
	p.s = before
}

// value reads "=" and a token or quoted string.
func (p *challengeParser) value() string {
	p.s = p.s[1:]
	p.space()
	if !strings.HasPrefix(p.s, `"`) {
		return p.until(" \t,")
	}
	var b strings.Builder
	for i := 1; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '"':
			p.s = p.s[i+1:]
			return b.String()
		case c == '\\' && i+1 < len(p.s):
			i++
			b.WriteByte(p.s[i])
		default:
			b.WriteByte(c)
		}
	}
	p.s = ""
	return b.String()
}
