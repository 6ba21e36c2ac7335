package search

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// eachWord calls f for every word of text in lower case: it splits at whatever is
// neither letter nor digit and where the case changes (searchIssues, HTTPServer).
// Scripts without spaces give one word per character. The bytes are f's only until
// it returns.
func eachWord(text string, f func([]byte)) {
	word := make([]byte, 0, 64)
	flush := func() {
		if len(word) > 0 {
			f(word)
		}
		word = word[:0]
	}
	var before rune // the last character of the word so far
	for i, r := range text {
		switch kind(r) {
		case separator:
			flush()
			continue
		case whole:
			flush()
			word = utf8.AppendRune(word, r)
			flush()
			continue
		}
		if len(word) > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(before) || lowerNext(text[i:])) {
			flush()
		}
		word = utf8.AppendRune(word, unicode.ToLower(r))
		before = r
	}
	flush()
}

type runeKind uint8

const (
	separator runeKind = iota
	letter
	whole // a word of its own
)

func kind(r rune) runeKind {
	switch {
	case r < utf8.RuneSelf:
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return letter
		}
		return separator
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
		return whole
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.Mn, r):
		return letter
	}
	return separator
}

// lowerNext reports whether a small letter follows the first character: the S of
// HTTPServer begins a word, that of HTTPS does not.
func lowerNext(s string) bool {
	_, n := utf8.DecodeRuneInString(s)
	r, _ := utf8.DecodeRuneInString(s[n:])
	return unicode.IsLower(r)
}

// stem takes the common endings of English off, so that issues finds issue and
// creating finds create. It need not be a word; it only has to be the same for
// words that belong together. It may change the bytes of w.
func stem(w []byte) []byte {
	if len(w) < 4 || !ascii(w) {
		return w
	}
	w = singular(w)
	for _, ending := range [...]string{"ing", "ed"} {
		if s, ok := cutSuffix(w, ending); ok && len(s) >= 3 && bytes.ContainsAny(s, "aeiouy") {
			s, _ = cutSuffix(undouble(s), "e")
			return s
		}
	}
	if len(w) > 3 {
		w, _ = cutSuffix(w, "e")
	}
	return w
}

func singular(w []byte) []byte {
	switch {
	case hasSuffix(w, "ies") && len(w) > 4:
		return append(w[:len(w)-3], 'y')
	case hasSuffix(w, "sses"), hasSuffix(w, "shes"), hasSuffix(w, "ches"), hasSuffix(w, "xes"), hasSuffix(w, "zes"):
		return w[:len(w)-2]
	case hasSuffix(w, "s") && !hasSuffix(w, "ss") && !hasSuffix(w, "us") && !hasSuffix(w, "is"):
		return w[:len(w)-1]
	}
	return w
}

// undouble makes runn run and leaves call and pass.
func undouble(s []byte) []byte {
	n := len(s)
	if n > 3 && s[n-1] == s[n-2] && s[n-1] != 'l' && s[n-1] != 's' && s[n-1] != 'z' {
		return s[:n-1]
	}
	return s
}

func hasSuffix(w []byte, ending string) bool {
	return len(w) >= len(ending) && string(w[len(w)-len(ending):]) == ending
}

func cutSuffix(w []byte, ending string) ([]byte, bool) {
	if !hasSuffix(w, ending) {
		return w, false
	}
	return w[:len(w)-len(ending)], true
}

func ascii(w []byte) bool {
	for _, c := range w {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
