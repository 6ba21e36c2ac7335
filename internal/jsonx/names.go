package jsonx

import (
	"bytes"
	"unicode/utf8"
)

// Duplicate returns a name that two members of obj share, and false when all names
// differ or obj is no object. It looks at obj itself, not at what is nested in it.
// Readers take the first or the last of such members, so what one reader has
// checked is not what the next one does.
func Duplicate(obj []byte) (string, bool) {
	var few [32][]byte
	seen := few[:0]
	var many map[string]bool // takes over when few is full
	for m := Object(obj); m.Next(); {
		if many != nil {
			if many[string(m.Key)] {
				return string(m.Key), true
			}
			many[string(m.Key)] = true
			continue
		}
		for _, s := range seen {
			if bytes.Equal(s, m.Key) {
				return string(m.Key), true
			}
		}
		if seen = append(seen, m.Key); len(seen) == len(few) {
			many = make(map[string]bool, 2*len(few))
			for _, s := range seen {
				many[string(s)] = true
			}
		}
	}
	return "", false
}

// Lookalike returns the first of the known ASCII names that a careless reader would
// take key for although it is another: one that ignores case, or that ends a name
// at a NUL. It returns "" when key resembles none or is one of them.
func Lookalike(key []byte, known []string) string {
	cut, _, _ := bytes.Cut(key, []byte{0})
	for _, name := range known {
		if string(key) != name && foldEqual(cut, name) {
			return name
		}
	}
	return ""
}

// foldEqual compares without regard to case as the most generous readers do: beside
// A-Z these fold four other letters onto ASCII ones (encoding/json the long s and
// the Kelvin sign, Java the two Turkish i).
func foldEqual(key []byte, name string) bool {
	for len(key) > 0 {
		if name == "" {
			return false
		}
		r, n := rune(key[0]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(key)
		}
		if foldRune(r) != foldRune(rune(name[0])) {
			return false
		}
		key, name = key[n:], name[1:]
	}
	return name == ""
}

func foldRune(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r == '\u017f':
		return 's'
	case r == '\u212a':
		return 'k'
	case r == '\u0130', r == '\u0131':
		return 'i'
	}
	return r
}
