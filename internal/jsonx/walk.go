package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Members walks the members of one object in order. The zero value is empty; make
// one with [Object].
//
//	for m := jsonx.Object(raw); m.Next(); {
//		use(m.Key, m.Value)
//	}
//
// Only the syntax of the walked part is checked, so read Err afterwards.
type Members struct {
	Key   []byte // the member's name, unescaped
	Value []byte // the member's value as it stands, without surrounding space

	b       []byte
	i       int // where to go on
	start   int // offset of the current member's name
	valueAt int // offset of the current member's value
	first   bool
	done    bool
	err     error
}

// Object begins a walk over the members of the object that b holds.
func Object(b []byte) Members {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return Members{done: true, err: syntaxErr(i, "an object is expected")}
	}
	return Members{b: b, i: i + 1, first: true}
}

// Next moves to the next member and reports whether there is one.
func (m *Members) Next() bool {
	if m.done {
		return false
	}
	i := skipSpace(m.b, m.i)
	if i >= len(m.b) {
		return m.fail(syntaxErr(i, "the object does not end"))
	}
	switch {
	case m.b[i] == '}':
		return m.finish(i + 1)
	case m.first:
		m.first = false
	case m.b[i] == ',':
		i = skipSpace(m.b, i+1)
	default:
		return m.fail(syntaxErr(i, "a comma or } is expected"))
	}
	nameEnd, valueAt, err := member(m.b, i)
	if err != nil {
		return m.fail(err)
	}
	end, err := skipValue(m.b, valueAt, 1)
	if err != nil {
		return m.fail(err)
	}
	m.start, m.valueAt, m.i = i, valueAt, end
	m.Key, m.Value = unquoteRaw(m.b[i:nameEnd]), m.b[valueAt:end:end]
	return true
}

func (m *Members) finish(end int) bool {
	m.done, m.i = true, end
	if rest := skipSpace(m.b, end); rest != len(m.b) {
		m.err = syntaxErr(rest, "more text after the value")
	}
	return false
}

func (m *Members) fail(err error) bool {
	m.done, m.err = true, err
	return false
}

// Err is what stopped the walk, nil after a whole object.
func (m *Members) Err() error { return m.err }

// Elements walks the elements of one array in order, like [Members].
type Elements struct {
	Value []byte // the element as it stands

	b     []byte
	i     int
	first bool
	done  bool
	err   error
}

// Array begins a walk over the elements of the array that b holds.
func Array(b []byte) Elements {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return Elements{done: true, err: syntaxErr(i, "an array is expected")}
	}
	return Elements{b: b, i: i + 1, first: true}
}

// Next moves to the next element and reports whether there is one.
func (e *Elements) Next() bool {
	if e.done {
		return false
	}
	i := skipSpace(e.b, e.i)
	if i >= len(e.b) {
		return e.fail(syntaxErr(i, "the array does not end"))
	}
	switch {
	case e.b[i] == ']':
		e.done = true
		if rest := skipSpace(e.b, i+1); rest != len(e.b) {
			e.err = syntaxErr(rest, "more text after the value")
		}
		return false
	case e.first:
		e.first = false
	case e.b[i] == ',':
		i = skipSpace(e.b, i+1)
	default:
		return e.fail(syntaxErr(i, "a comma or ] is expected"))
	}
	end, err := skipValue(e.b, i, 1)
	if err != nil {
		return e.fail(err)
	}
	e.Value, e.i = e.b[i:end:end], end
	return true
}

func (e *Elements) fail(err error) bool {
	e.done, e.err = true, err
	return false
}

// Err is what stopped the walk, nil after a whole array.
func (e *Elements) Err() error { return e.err }

// Get returns the raw value of the first member named key, and false when obj is
// no object or has no such member.
func Get(obj []byte, key string) ([]byte, bool) {
	for m := Object(obj); m.Next(); {
		if string(m.Key) == key {
			return m.Value, true
		}
	}
	return nil, false
}

// Path follows keys through nested objects.
func Path(obj []byte, keys ...string) ([]byte, bool) {
	for _, k := range keys {
		v, ok := Get(obj, k)
		if !ok {
			return nil, false
		}
		obj = v
	}
	return obj, true
}

// Text returns the string that raw holds, and false when raw is no JSON string.
func Text(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if end, err := skipString(raw, 0); err != nil || end != len(raw) {
		return "", false
	}
	return string(unquoteRaw(raw)), true
}

// GetText returns the string member named key of obj, "" when there is none.
func GetText(obj []byte, key string) string {
	v, _ := Get(obj, key)
	s, _ := Text(v)
	return s
}

// TypeOf names the JSON type of raw as people say it: "object", "array",
// "string", "number", "boolean", "null", or "nothing" for empty input.
func TypeOf(raw []byte) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// unquoteRaw returns the text of a syntactically valid quoted string. Without an
// escape it is a part of the input and costs nothing.
func unquoteRaw(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		// Unreachable for input that skipString accepted.
		return fmt.Appendf(nil, "%s", inner)
	}
	return []byte(s)
}
