package jsonx

import "bytes"

// Members walks the members of one object in order. The zero value is empty; make
// one with [Object].
//
//	for m := jsonx.Object(raw); m.Next(); {
//		use(m.Key, m.Value)
//	}
//
// Only the syntax of the walked part is checked, so read Err afterwards. When the
// walk failed in a value, Key still is that member's name and Value is nil.
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

// errNothing is never changed: looking into what is not there is common, and an error
// that nobody reads should cost nothing.
var errNothing error = &SyntaxError{Msg: "an object is expected"}

// Object begins a walk over the members of the object that b holds.
func Object(b []byte) Members {
	i := skipSpace(b, 0)
	if len(b) == 0 {
		return Members{done: true, err: errNothing}
	}
	if i >= len(b) || b[i] != '{' {
		return Members{done: true, err: syntaxErr(i, "an object is expected")}
	}
	return Members{b: b, i: i + 1, first: true}
}

// Next moves to the next member and reports whether there is one.
func (m *Members) Next() bool {
	m.Key, m.Value = nil, nil
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
	m.Key = unquote(m.b[i:nameEnd])
	end, err := skipValue(m.b, valueAt, 1)
	if err != nil {
		return m.fail(err)
	}
	m.start, m.valueAt, m.i = i, valueAt, end
	m.Value = m.b[valueAt:end:end]
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
	e.Value = nil
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
// not an object or has no such member.
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

// TypeOf names the JSON type of raw as people say it: "object", "array",
// "string", "number", "boolean", "null", or "nothing" where no value begins. It
// looks at the first byte only.
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
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return "number"
	}
	return "nothing"
}
