package jsonx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest. Deeper input is refused, so
// that nobody can exhaust the stack of a reader further on.
const MaxDepth = 1000

// SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int    // byte offset of the first byte that does not fit
	Msg    string // what was expected or found there
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Msg)
}

func syntaxErr(offset int, msg string) error { return &SyntaxError{Offset: offset, Msg: msg} }

// Valid reports whether b is exactly one JSON value in valid UTF-8, with nothing
// but white space around it, nested at most [MaxDepth] deep.
func Valid(b []byte) error {
	if !utf8.Valid(b) {
		return syntaxErr(invalidUTF8At(b), "invalid UTF-8")
	}
	end, err := skipValue(b, skipSpace(b, 0), 0)
	if err != nil {
		return err
	}
	if end = skipSpace(b, end); end != len(b) {
		return syntaxErr(end, "more text after the value")
	}
	return nil
}

func invalidUTF8At(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// skipValue returns the offset behind the value that begins at i, which stands depth
// deep itself. It keeps account of what is open instead of calling itself: a foreign
// text that nests deeply would make the stack of every reader grow.
func skipValue(b []byte, i, depth int) (int, error) {
	if i < len(b) && b[i] != '{' && b[i] != '[' {
		return skipScalar(b, i)
	}
	var open nesting
	for {
		var err error
		switch {
		case i < len(b) && (b[i] == '{' || b[i] == '['):
			if depth+open.n >= MaxDepth {
				return i, syntaxErr(i, "nested too deep")
			}
			open.push(b[i] == '{')
			i = skipSpace(b, i+1)
			if i < len(b) && b[i] == open.end() {
				break // it is empty
			}
			if open.object() {
				_, i, err = member(b, i)
			}
			if err != nil {
				return i, err
			}
			continue
		default:
			if i, err = skipScalar(b, i); err != nil {
				return i, err
			}
		}
		if i, err = open.close(b, i); err != nil || open.n == 0 {
			return i, err
		}
	}
}

// nesting is which arrays and objects are open.
type nesting struct {
	n       int
	objects [MaxDepth/64 + 1]uint64 // a bit for each that is an object
}

func (o *nesting) push(object bool) {
	word, bit := &o.objects[o.n/64], uint64(1)<<(o.n%64)
	if *word &^= bit; object {
		*word |= bit
	}
	o.n++
}

func (o *nesting) object() bool { return o.objects[(o.n-1)/64]>>((o.n-1)%64)&1 != 0 }

// end is the byte that closes the innermost.
func (o *nesting) end() byte {
	if o.object() {
		return '}'
	}
	return ']'
}

// close passes over everything between a value that ends at i and the next one: what
// closes, a comma, a member's name.
func (o *nesting) close(b []byte, i int) (int, error) {
	for o.n > 0 {
		i = skipSpace(b, i)
		switch {
		case i >= len(b):
			return i, syntaxErr(i, "the "+o.what()+" does not end")
		case b[i] == o.end():
			o.n--
			i++
		case b[i] != ',':
			return i, syntaxErr(i, "a comma or "+string(o.end())+" is expected")
		case o.object():
			_, next, err := member(b, skipSpace(b, i+1))
			return next, err
		default:
			return skipSpace(b, i+1), nil
		}
	}
	return i, nil
}

func (o *nesting) what() string {
	if o.object() {
		return "object"
	}
	return "array"
}

// skipScalar is skipValue for everything that nothing nests in.
func skipScalar(b []byte, i int) (int, error) {
	if i >= len(b) {
		return i, syntaxErr(i, "a value is missing")
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return skipNumber(b, i)
	case 't':
		return skipLiteral(b, i, "true")
	case 'f':
		return skipLiteral(b, i, "false")
	case 'n':
		return skipLiteral(b, i, "null")
	}
	return i, syntaxErr(i, "a value is expected")
}

// member reads a member's name at i and returns the offset behind the name and
// the offset where its value begins.
func member(b []byte, i int) (nameEnd, valueAt int, err error) {
	if i >= len(b) || b[i] != '"' {
		return i, i, syntaxErr(i, "a member name is expected")
	}
	if nameEnd, err = skipString(b, i); err != nil {
		return i, i, err
	}
	colon := skipSpace(b, nameEnd)
	if colon >= len(b) || b[colon] != ':' {
		return i, i, syntaxErr(colon, "a colon is expected")
	}
	return nameEnd, skipSpace(b, colon+1), nil
}

func skipString(b []byte, i int) (int, error) {
	quote := 0 // where a quote is known to be; everything before it was looked at
	for j := i + 1; ; {
		if j = skipPlain(b, j, min(len(b), j+shortRun)); j < len(b) && plain(b[j]) {
			if quote < j {
				quote = indexFrom(b, j, '"')
			}
			j = skipLong(b[:quote], j)
		}
		if j >= len(b) {
			return i, syntaxErr(i, "the string does not end")
		}
		switch b[j] {
		case '"':
			return j + 1, nil
		case '\\':
			n, err := escapeLen(b, j)
			if err != nil {
				return j, err
			}
			j += n
		default:
			return j, syntaxErr(j, "a control character in a string")
		}
	}
}

// shortRun is how much of a string is looked at eight bytes at a time; the rest is
// left to what the processor has for that.
const shortRun = 256

// plain reports whether a byte may stand in a string as it is.
func plain(c byte) bool { return c >= 0x20 && c != '"' && c != '\\' }

// indexFrom is the offset of the first c from i on, or the length of b.
func indexFrom(b []byte, i int, c byte) int {
	if n := bytes.IndexByte(b[i:], c); n >= 0 {
		return i + n
	}
	return len(b)
}

// skipLong is skipPlain for a text that is known to hold no quote from i on.
func skipLong(b []byte, i int) int {
	const (
		spaces = 0x2020202020202020
		highs  = 0x8080808080808080
	)
	end := indexFrom(b, i, '\\')
	for ; end-i >= 32; i += 32 {
		w := b[i : i+32]
		w0, w1 := binary.LittleEndian.Uint64(w), binary.LittleEndian.Uint64(w[8:])
		w2, w3 := binary.LittleEndian.Uint64(w[16:]), binary.LittleEndian.Uint64(w[24:])
		if ((w0-spaces)&^w0|(w1-spaces)&^w1|(w2-spaces)&^w2|(w3-spaces)&^w3)&highs != 0 {
			break // a control character is among them
		}
	}
	for i < end && b[i] >= 0x20 {
		i++
	}
	return i
}

// skipPlain returns the offset of the first byte between i and end that may not stand
// unescaped in a string, a quote, a backslash or a control character, or end. It looks at
// eight bytes at a time, since long strings are most of what a host moves. The
// lowest marked byte is always a true one; a borrow can only mark bytes above it.
func skipPlain(b []byte, i, end int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; end-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		hit := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w) & highs
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for i < end && plain(b[i]) {
		i++
	}
	return i
}

// escapeLen returns the length of the escape sequence whose backslash is at i.
func escapeLen(b []byte, i int) (int, error) {
	if i+1 >= len(b) {
		return 0, syntaxErr(i, "the string does not end")
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
		if i+6 > len(b) {
			return 0, syntaxErr(i, "the string does not end")
		}
		for _, c := range b[i+2 : i+6] {
			if !isHex(c) {
				return 0, syntaxErr(i, "an invalid \\u escape")
			}
		}
		return 6, nil
	}
	return 0, syntaxErr(i, "an unknown escape")
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func skipNumber(b []byte, i int) (int, error) {
	start := i
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, syntaxErr(i, "a digit is expected")
	case b[i] == '0':
		i++
	case b[i] >= '1' && b[i] <= '9':
		i = skipDigits(b, i)
	default:
		return i, syntaxErr(i, "a digit is expected")
	}
	if i < len(b) && b[i] == '.' {
		j := skipDigits(b, i+1)
		if j == i+1 {
			return j, syntaxErr(j, "a digit is expected after the point")
		}
		i = j
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		j := i + 1
		if j < len(b) && (b[j] == '+' || b[j] == '-') {
			j++
		}
		k := skipDigits(b, j)
		if k == j {
			return k, syntaxErr(k, "a digit is expected in the exponent")
		}
		i = k
	}
	if i-start > maxNumberLen {
		return start, syntaxErr(start, "a number of more than 1,000 characters")
	}
	return i, nil
}

// maxNumberLen bounds a number's text: readers that convert numbers need time
// that grows faster than its length.
const maxNumberLen = 1000

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

func skipLiteral(b []byte, i int, lit string) (int, error) {
	if len(b)-i < len(lit) || string(b[i:i+len(lit)]) != lit {
		return i, syntaxErr(i, "a value is expected")
	}
	return i + len(lit), nil
}
