package jsonx

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the string that raw holds, and false when raw is not a JSON string.
// Half of a surrogate pair, which servers make by cutting text in the middle of an
// emoji, becomes U+FFFD.
func Text(raw []byte) (string, bool) {
	inner, ok := inside(raw)
	if !ok {
		return "", false
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	out, _ := appendUnquoted(make([]byte, 0, len(inner)), inner)
	return string(out), true
}

// StrictText is [Text] for what decisions are made on: it is false, too, for a
// string with half of a surrogate pair, since readers disagree about its text.
func StrictText(raw []byte) (string, bool) {
	inner, ok := inside(raw)
	if !ok {
		return "", false
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	out, whole := appendUnquoted(make([]byte, 0, len(inner)), inner)
	if !whole {
		return "", false
	}
	return string(out), true
}

// inside returns what stands between the quotes of the string raw.
func inside(raw []byte) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	if end, err := skipString(raw, 0); err != nil || end != len(raw) {
		return nil, false
	}
	return raw[1 : len(raw)-1], true
}

// GetText returns the string member named key of obj, "" when there is none.
func GetText(obj []byte, key string) string {
	v, _ := Get(obj, key)
	s, _ := Text(v)
	return s
}

// unquote returns the text of a syntactically valid quoted string. Without an
// escape it is a part of the input and costs nothing.
func unquote(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	out, _ := appendUnquoted(make([]byte, 0, len(inner)), inner)
	return out
}

// appendUnquoted appends the text of a syntactically valid string, whose quotes
// have been taken off, and reports whether no surrogate stood alone.
func appendUnquoted(dst, inner []byte) (out []byte, whole bool) {
	whole = true
	for {
		k := bytes.IndexByte(inner, '\\')
		if k < 0 {
			return append(dst, inner...), whole
		}
		dst = append(dst, inner[:k]...)
		c := inner[k+1]
		inner = inner[k+2:]
		if c != 'u' {
			dst = append(dst, unescaped(c))
			continue
		}
		r := hex4(inner)
		inner = inner[4:]
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if len(inner) >= 6 && inner[0] == '\\' && inner[1] == 'u' {
				low = hex4(inner[2:])
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				whole = false
			} else {
				inner = inner[6:]
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c // a quote, a backslash or a slash
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c <= '9':
			r |= rune(c - '0')
		case c <= 'F':
			r |= rune(c - 'A' + 10)
		default:
			r |= rune(c - 'a' + 10)
		}
	}
	return r
}

const hexDigits = "0123456789abcdef"

// AppendText appends s as a JSON string. Only what JSON demands is escaped;
// invalid UTF-8 becomes U+FFFD.
func AppendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, s[from:i]...), "\uFFFD"...)
		} else {
			dst = appendEscape(append(dst, s[from:i]...), c)
		}
		i++
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// Quote returns s as a JSON string.
func Quote(s string) []byte { return AppendText(make([]byte, 0, len(s)+2), s) }
