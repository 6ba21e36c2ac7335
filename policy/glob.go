package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// glob is a compiled pattern over one name: * stands for any text, ? for one
// character, [a-z] and [^a-z] for one of a class, and a backslash takes what
// follows literally. Unlike in paths * also stands for a slash, since a slash has
// no meaning in the name of a tool and must not be a way past a rule.
type glob struct {
	exact  []token
	folded []token // what a deny rule tries as well, see fold
}

type tokenKind uint8

const (
	literal tokenKind = iota
	anyText
	anyOne
	class
)

type token struct {
	kind   tokenKind
	r      rune
	ranges []rune // pairs from, to
	negate bool
}

func compileGlob(pattern string) glob {
	exact := tokens(pattern)
	return glob{exact: exact, folded: foldTokens(exact)}
}

// matches compares byte for byte, as an allow rule does.
func (g *glob) matches(name string) bool { return match(g.exact, name) }

// catches compares as a deny rule does; folded is fold(name).
func (g *glob) catches(name, folded string) bool {
	return match(g.exact, name) || match(g.folded, folded)
}

// all reports whether the pattern stands for every name.
func (g *glob) all() bool {
	for _, t := range g.exact {
		if t.kind != anyText {
			return false
		}
	}
	return len(g.exact) > 0
}

// tokens reads a pattern whose syntax config has checked. What is not closed or
// not complete stands for itself.
func tokens(pattern string) []token {
	var out []token
	for len(pattern) > 0 {
		r, n := utf8.DecodeRuneInString(pattern)
		pattern = pattern[n:]
		switch r {
		case '*':
			out = append(out, token{kind: anyText})
			continue
		case '?':
			out = append(out, token{kind: anyOne})
			continue
		case '[':
			if t, rest, ok := readClass(pattern); ok {
				out = append(out, t)
				pattern = rest
				continue
			}
		case '\\':
			if len(pattern) > 0 {
				r, n = utf8.DecodeRuneInString(pattern)
				pattern = pattern[n:]
			}
		}
		out = append(out, token{r: r})
	}
	return out
}

// readClass reads a class behind its opening bracket.
func readClass(s string) (t token, rest string, ok bool) {
	t.kind = class
	if s, t.negate = strings.CutPrefix(s, "^"); t.negate && s == "" {
		return t, "", false
	}
	for len(s) > 0 && (s[0] != ']' || len(t.ranges) == 0) {
		var low rune
		if low, s, ok = classRune(s); !ok {
			return t, "", false
		}
		high := low
		if len(s) > 1 && s[0] == '-' && s[1] != ']' {
			if high, s, ok = classRune(s[1:]); !ok {
				return t, "", false
			}
		}
		t.ranges = append(t.ranges, low, high)
	}
	if s == "" {
		return t, "", false
	}
	return t, s[1:], true
}

func classRune(s string) (rune, string, bool) {
	s = strings.TrimPrefix(s, `\`)
	if s == "" {
		return 0, "", false
	}
	r, n := utf8.DecodeRuneInString(s)
	return r, s[n:], true
}

// foldTokens folds runs of literals and makes classes blind to case.
func foldTokens(exact []token) []token {
	var out []token
	var run []rune
	flush := func() {
		for _, r := range foldPattern(string(run)) {
			out = append(out, token{r: r})
		}
		run = run[:0]
	}
	for _, t := range exact {
		if t.kind == literal {
			run = append(run, t.r)
			continue
		}
		flush()
		out = append(out, caseless(t))
	}
	flush()
	return out
}

func (t *token) fits(r rune) bool {
	switch t.kind {
	case literal:
		return t.r == r
	case anyOne:
		return true
	}
	return t.holds(r) != t.negate
}

func (t *token) holds(r rune) bool {
	for i := 0; i < len(t.ranges); i += 2 {
		low, high := t.ranges[i], t.ranges[i+1]
		if low <= r && r <= high {
			return true
		}
	}
	return false
}

// match runs in time proportional to the product of the lengths at worst: after a
// mismatch only the last * has to take more.
func match(p []token, s string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for i < len(s) {
		if j < len(p) && p[j].kind == anyText {
			star, mark = j, i
			j++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if j < len(p) && p[j].fits(r) {
			i += n
			j++
			continue
		}
		if star < 0 {
			return false
		}
		_, n = utf8.DecodeRuneInString(s[mark:])
		mark += n
		i, j = mark, star+1
	}
	for j < len(p) && p[j].kind == anyText {
		j++
	}
	return j == len(p)
}

// caseless widens the classes of a pattern to both cases.
func caseless(t token) token {
	var ranges []rune
	for i := 0; i < len(t.ranges); i += 2 {
		low, high := t.ranges[i], t.ranges[i+1]
		ranges = append(ranges, low, high, unicode.ToLower(low), unicode.ToLower(high), unicode.ToUpper(low), unicode.ToUpper(high))
	}
	t.ranges = ranges
	return t
}
