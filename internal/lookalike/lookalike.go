// Package lookalike finds names that another reader may take for a known one: in
// another case, with letters of other scripts, with invisible characters, with
// separators or spaces more or less.
//
// What usher decides on is one exact name. A reader behind it may be more generous,
// so a name that only resembles one of those is refused instead of passed on:
//
//	name ─► Skeleton: every character as the ASCII text it looks like
//	     ─► Of: compared with the known names, without separators
//
// It owns no list of names and no decision.
package lookalike

import (
	"bytes"
	"unicode/utf8"
)

// longest is how long a known name may be, folded.
const longest = 64

// Of returns the first of the known ASCII names that a careless reader would take key
// for although it is another; "" when key resembles none or is one of them. Known
// names have at most 64 characters. It costs no memory where key is ASCII.
func Of(key []byte, known []string) string {
	for _, name := range known {
		if string(key) == name {
			return ""
		}
	}
	if cut, _, found := bytes.Cut(key, []byte{0}); found { // some readers end a name there
		for _, name := range known {
			if string(cut) == name {
				return name
			}
		}
		if name := Of(cut, known); name != "" {
			return name
		}
	}
	if !isASCII(key) {
		key = []byte(Skeleton(string(key)))
	}
	var a, b [longest]byte
	n, ok := fold(&a, key)
	if !ok || n == 0 {
		return ""
	}
	for _, name := range known {
		if k, ok := fold(&b, name); ok && k == n && a == b {
			return name
		}
		b = [longest]byte{}
	}
	return ""
}

func isASCII(s []byte) bool {
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// fold writes the letters and digits of s to out, in lower case, and one underscore
// where s begins with some: `_meta` is not `meta`. It is false when there are more
// than fit.
func fold[S []byte | string](out *[longest]byte, s S) (n int, ok bool) {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == '_' && n == 0:
		case c == '_' || c == '-' || c == '.' || c == '/' || c == '\\' || c == ':' || c <= ' ' || c == 0x7f:
			continue
		}
		if n == longest {
			return n, false
		}
		out[n] = c
		n++
	}
	return n, true
}
