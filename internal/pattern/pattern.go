// Package pattern is the one pattern language for names of servers, accounts, tools
// and hosts, in configuration files, tokens and command lines.
//
//	pattern.Check(p)          // says what is wrong with a pattern a person wrote
//	pattern.Match(p, name)    // once
//	pattern.Compile(p).Match  // many times
//
// * stands for any text, ? for one character, [a-z] and [^a-z] for one of a class, and
// a backslash takes what follows literally. Unlike in paths * also stands for a
// slash, since a slash has no meaning in the name of a tool and must not be a way past
// a rule. Case counts; see [Pattern.Fold] for patterns that it must not.
//
// Matching takes time proportional to the product of the lengths at worst. It does not
// own what a match means: rules and scopes are policy's.
package pattern

import (
	"errors"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Check says what is wrong with the syntax of a pattern, or returns nil.
func Check(p string) error {
	if p == "" {
		return errors.New("it is empty")
	}
	_, err := path.Match(p, "")
	return err
}

// Match reports whether name matches p. It does not allocate for patterns of usual
// length.
func Match(p, name string) bool {
	i := strings.IndexAny(p, `*?[\`)
	switch {
	case i < 0:
		return p == name
	case !strings.HasPrefix(name, p[:i]):
		return false
	case p[i:] == "*":
		return true
	}
	var room [32]token
	return match(appendTokens(room[:0], p[i:]), name[i:])
}

// Any reports whether one of the names matches one of the patterns.
func Any(patterns []string, names ...string) bool {
	for _, p := range patterns {
		for _, name := range names {
			if Match(p, name) {
				return true
			}
		}
	}
	return false
}

// Pattern is a compiled pattern. The zero value matches the empty name only.
type Pattern struct{ tokens []token }

// Compile reads a pattern. What is not closed or not complete stands for itself; see
// [Check].
func Compile(p string) Pattern { return Pattern{appendTokens(nil, p)} }

// Match reports whether name matches.
func (p Pattern) Match(name string) bool { return match(p.tokens, name) }

// All reports whether the pattern matches every name.
func (p Pattern) All() bool {
	for _, t := range p.tokens {
		if t.kind != anyText {
			return false
		}
	}
	return len(p.tokens) > 0
}

// Fold returns the pattern with fold applied to its literal parts and with classes
// that ignore case, for names to which the same fold is applied.
func (p Pattern) Fold(fold func(literal string) string) Pattern {
	var out []token
	var run []rune
	flush := func() {
		for _, r := range fold(string(run)) {
			out = append(out, token{r: r})
		}
		run = run[:0]
	}
	for _, t := range p.tokens {
		if t.kind == literal {
			run = append(run, t.r)
			continue
		}
		flush()
		t.caseless = true
		out = append(out, t)
	}
	flush()
	return Pattern{out}
}

type kind uint8

const (
	literal kind = iota
	anyText
	anyOne
	class
)

type token struct {
	kind     kind
	negate   bool
	caseless bool
	r        rune   // of a literal
	class    string // what stands between the brackets, without ^
}

func appendTokens(out []token, p string) []token {
	for len(p) > 0 {
		r, n := utf8.DecodeRuneInString(p)
		p = p[n:]
		switch r {
		case '*':
			out = append(out, token{kind: anyText})
			continue
		case '?':
			out = append(out, token{kind: anyOne})
			continue
		case '[':
			if t, rest, ok := readClass(p); ok {
				out = append(out, t)
				p = rest
				continue
			}
		case '\\':
			if len(p) > 0 {
				r, n = utf8.DecodeRuneInString(p)
				p = p[n:]
			}
		}
		out = append(out, token{r: r})
	}
	return out
}

// readClass reads a class behind its opening bracket.
func readClass(s string) (t token, rest string, ok bool) {
	t.kind = class
	s, t.negate = strings.CutPrefix(s, "^")
	rest = s
	for first := true; first || rest != "" && rest[0] != ']'; first = false {
		if _, _, rest, ok = classRange(rest); !ok {
			return t, "", false
		}
	}
	if rest == "" {
		return t, "", false
	}
	t.class = s[:len(s)-len(rest)]
	return t, rest[1:], true
}

// classRange reads one character or range of a class.
func classRange(s string) (low, high rune, rest string, ok bool) {
	if low, s, ok = classRune(s); !ok {
		return 0, 0, "", false
	}
	if len(s) > 1 && s[0] == '-' && s[1] != ']' {
		high, s, ok = classRune(s[1:])
		return low, high, s, ok
	}
	return low, low, s, true
}

func classRune(s string) (rune, string, bool) {
	s = strings.TrimPrefix(s, `\`)
	if s == "" {
		return 0, "", false
	}
	r, n := utf8.DecodeRuneInString(s)
	return r, s[n:], true
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
	within := func(low, high rune) bool { return low <= r && r <= high }
	for s := t.class; s != ""; {
		var low, high rune
		low, high, s, _ = classRange(s) // readClass has read it
		if within(low, high) || t.caseless &&
			(within(unicode.ToLower(low), unicode.ToLower(high)) || within(unicode.ToUpper(low), unicode.ToUpper(high))) {
			return true
		}
	}
	return false
}

// match tries again after a mismatch, and then only the last * has to take more.
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
