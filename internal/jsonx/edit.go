package jsonx

import "unicode/utf8"

// Edit is one change to a member of an object: a new raw value, or removal where
// Value is nil.
type Edit struct {
	Key   string
	Value []byte
}

// Set returns obj with the member key holding value. A present member keeps its
// place, a new one goes to the end; every other byte stays. An obj that is empty,
// null or no object becomes a new object with that one member.
func Set(obj []byte, key string, value []byte) []byte {
	return Apply(obj, Edit{key, value})
}

// Delete returns obj without the member key.
func Delete(obj []byte, key string) []byte {
	return Apply(obj, Edit{key, nil})
}

// Apply makes several edits in one pass over obj. The result shares no memory
// with obj when something changed, and is obj itself when nothing did.
func Apply(obj []byte, edits ...Edit) []byte {
	if TypeOf(obj) != "object" {
		obj = []byte("{}")
	}
	size := len(obj)
	for _, e := range edits {
		size += len(e.Key) + len(e.Value) + 8
	}
	out := make([]byte, 1, size)
	out[0] = '{'
	done := make([]bool, len(edits))
	changed := false
	for m := Object(obj); m.Next(); {
		k := find(edits, m.Key)
		if k < 0 {
			out = appendComma(out)
			out = append(out, obj[m.start:m.i]...)
			continue
		}
		changed = true
		if done[k] || edits[k].Value == nil {
			done[k] = true
			continue
		}
		done[k] = true
		out = appendComma(out)
		out = append(out, obj[m.start:m.valueAt]...)
		out = append(out, edits[k].Value...)
	}
	for k, e := range edits {
		if done[k] || e.Value == nil {
			continue
		}
		changed = true
		out = appendComma(out)
		out = append(AppendText(out, e.Key), ':')
		out = append(out, e.Value...)
	}
	if !changed {
		return obj
	}
	return append(out, '}')
}

func find(edits []Edit, key []byte) int {
	for k := range edits {
		if edits[k].Key == string(key) {
			return k
		}
	}
	return -1
}

func appendComma(out []byte) []byte {
	if len(out) > 1 {
		return append(out, ',')
	}
	return out
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
