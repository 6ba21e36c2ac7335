package jsonc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/usher-mcp/usher/internal/visible"
)

// maxDepth bounds nesting, so that no file can exhaust the stack of the
// recursive parsers.
const maxDepth = 200

// BOM is the byte order mark that some editors put before a file.
const BOM = "\xef\xbb\xbf"

// Parse reads JSON with comments and trailing commas. Errors say what was
// expected and where; hujson alone says neither in words a person would use.
// Offsets in the result refer to src.Text.
func Parse(src *Source) (hujson.Value, error) {
	c := &checker{src: src, text: src.Text}
	if err := c.document(); err != nil {
		return hujson.Value{}, err
	}
	// hujson wants a newline after a line comment, at the end of a file too.
	v, err := hujson.Parse(append(bytes.Clone(src.Text), '\n'))
	if err != nil {
		e := src.ErrorAt(0, "this is not JSON with comments")
		e.Err = err
		return hujson.Value{}, e
	}
	return v, nil
}

// Decode decodes JSON with comments and trailing commas into maps, slices,
// strings, booleans and json.Number. Errors are *Error, with a place.
func Decode(file string, text []byte) (any, error) {
	v, err := Parse(&Source{File: file, Text: bytes.TrimPrefix(text, []byte(BOM))})
	if err != nil {
		return nil, err
	}
	return Plain(v)
}

// checker is a recursive descent over JSONC that keeps nothing but the place
// and enough context to name what is missing.
type checker struct {
	src   *Source
	text  []byte
	pos   int
	depth int
}

func (c *checker) fail(offset int, format string, args ...any) *Error {
	return c.src.ErrorAt(offset, format, args...)
}

func (c *checker) document() error {
	if err := c.utf8(); err != nil {
		return err
	}
	if err := c.space(); err != nil {
		return err
	}
	if c.end() {
		return c.fail(c.pos, "the file is empty; expected {")
	}
	if err := c.value("the file"); err != nil {
		return err
	}
	if err := c.space(); err != nil {
		return err
	}
	if !c.end() {
		return c.fail(c.pos, "expected the end of the file after the first value")
	}
	return nil
}

func (c *checker) utf8() error {
	if utf8.Valid(c.text) {
		return nil
	}
	for i := 0; i < len(c.text); {
		r, n := utf8.DecodeRune(c.text[i:])
		if r == utf8.RuneError && n == 1 {
			return c.fail(i, "this byte is not UTF-8; save the file as UTF-8")
		}
		i += n
	}
	return nil
}

func (c *checker) end() bool { return c.pos >= len(c.text) }

func (c *checker) peek() byte {
	if c.end() {
		return 0
	}
	return c.text[c.pos]
}

// space skips blanks and comments.
func (c *checker) space() error {
	for !c.end() {
		switch c.text[c.pos] {
		case ' ', '\t', '\r', '\n':
			c.pos++
		case '/':
			if err := c.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

func (c *checker) comment() error {
	rest := c.text[c.pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			n = len(rest)
		}
		for _, sep := range []string{"\u2028", "\u2029"} {
			if i := bytes.Index(rest[:n], []byte(sep)); i >= 0 {
				return c.fail(c.pos+i, "this comment holds an invisible line separator; remove it")
			}
		}
		c.pos += n
	case bytes.HasPrefix(rest, []byte("/*")):
		n := bytes.Index(rest[2:], []byte("*/"))
		if n < 0 {
			return c.fail(c.pos, "this comment is never closed; expected */")
		}
		c.pos += n + 4
	default:
		return c.fail(c.pos, "unexpected /; a comment starts with // or /*")
	}
	return nil
}

// value checks one value; what names it in messages: `"args"`, `element 2 of "args"`.
func (c *checker) value(what string) error {
	if c.depth++; c.depth > maxDepth {
		return c.fail(c.pos, "nested deeper than %d levels", maxDepth)
	}
	defer func() { c.depth-- }()
	switch ch := c.peek(); {
	case c.end():
		return c.fail(c.pos, "expected a value for %s before the end of the file", what)
	case ch == '{':
		return c.object()
	case ch == '[':
		return c.array(what)
	case ch == '"':
		_, err := c.str()
		return err
	case ch == ',' || ch == '}' || ch == ']' || ch == ':':
		return c.fail(c.pos, "expected a value for %s, found %c", what, ch)
	default:
		return c.word(what)
	}
}

func (c *checker) object() error {
	open := c.pos
	c.pos++
	for {
		if err := c.space(); err != nil {
			return err
		}
		if c.end() {
			return c.unclosed(open, '}')
		}
		if c.peek() == '}' {
			c.pos++
			return nil
		}
		key, err := c.key()
		if err != nil {
			return err
		}
		if err := c.space(); err != nil {
			return err
		}
		if c.peek() != ':' {
			return c.fail(c.pos, "expected : after the key %s", key)
		}
		c.pos++
		if err := c.space(); err != nil {
			return err
		}
		if err := c.value(key); err != nil {
			return err
		}
		if done, err := c.separator(open, '}', "the value of "+key); done || err != nil {
			return err
		}
	}
}

func (c *checker) array(what string) error {
	open := c.pos
	c.pos++
	for i := 1; ; i++ {
		if err := c.space(); err != nil {
			return err
		}
		if c.end() {
			return c.unclosed(open, ']')
		}
		if c.peek() == ']' {
			c.pos++
			return nil
		}
		element := fmt.Sprintf("element %d of %s", i, what)
		if err := c.value(element); err != nil {
			return err
		}
		if done, err := c.separator(open, ']', element); done || err != nil {
			return err
		}
	}
}

// separator takes the comma after a value, or the closing bracket.
func (c *checker) separator(open int, closing byte, after string) (done bool, err error) {
	if err := c.space(); err != nil {
		return false, err
	}
	switch {
	case c.end():
		return false, c.unclosed(open, closing)
	case c.peek() == closing:
		c.pos++
		return true, nil
	case c.peek() == ',':
		c.pos++
		return false, nil
	}
	return false, c.fail(c.pos, "expected a comma or %c after %s", closing, after)
}

func (c *checker) unclosed(open int, closing byte) error {
	line, column := c.src.Position(open)
	return c.fail(len(bytes.TrimRight(c.text, " \t\r\n")), "expected %c before the end of the file, for the %c at line %d, column %d",
		closing, c.text[open], line, column)
}

// key checks a key and returns it quoted and safe to print.
func (c *checker) key() (string, error) {
	if c.peek() != '"' {
		return "", c.fail(c.pos, "expected a key in double quotes, or }")
	}
	raw, err := c.str()
	if err != nil {
		return "", err
	}
	return visible.Quote(hujson.Literal(raw).String()), nil
}

// str checks a string and returns it as written.
func (c *checker) str() ([]byte, error) {
	start := c.pos
	for c.pos++; !c.end(); c.pos++ {
		switch ch := c.text[c.pos]; {
		case ch == '\\':
			c.pos++
		case ch == '"':
			c.pos++
			raw := c.text[start:c.pos]
			if !json.Valid(raw) {
				return nil, c.fail(start, "this string holds an escape that JSON does not know; write \\\\ for a backslash")
			}
			return raw, nil
		case ch == '\n':
			return nil, c.fail(start, "this string is not closed on its line; expected \"")
		case ch < ' ':
			return nil, c.fail(c.pos, "a control character inside a string must be written as \\u%04x", ch)
		}
	}
	return nil, c.fail(start, "this string is never closed; expected \"")
}

// word checks a number, true, false or null.
func (c *checker) word(what string) error {
	start := c.pos
	for !c.end() && wordByte(c.text[c.pos]) {
		c.pos++
	}
	lit := c.text[start:c.pos]
	switch {
	case len(lit) == 0 && c.text[start] == '\'':
		return c.fail(start, "strings take double quotes")
	case len(lit) == 0:
		return c.fail(start, "expected a value for %s", what)
	case !json.Valid(lit):
		return c.fail(start, "expected a value for %s; strings must be double-quoted", what)
	}
	return nil
}

func wordByte(b byte) bool {
	return b == '-' || b == '+' || b == '.' ||
		'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

// CommaAfter returns the place of the comma that follows offset, with only
// blanks and comments between, or -1.
func CommaAfter(text []byte, offset int) int {
	c := &checker{src: &Source{Text: text}, text: text, pos: offset}
	if c.space() != nil || c.peek() != ',' {
		return -1
	}
	return c.pos
}
