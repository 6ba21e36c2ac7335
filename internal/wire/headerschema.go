package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
)

const headerKey = "x-mcp-header"

// maxHeaderParams bounds the headers one tool may ask for; servers refuse requests
// with more.
const maxHeaderParams = 100

// HeaderParams reads the `x-mcp-header` annotations of an input schema. An error
// means that the tool must not be offered: its header name is not a token or
// used twice, its property is not a string, integer or boolean, or it cannot be reached
// through `properties` alone.
func HeaderParams(inputSchema []byte) ([]HeaderParam, error) {
	// A name can be spelled with escapes, so only a schema without ASCII escapes can
	// be told to have none by looking at its text.
	if !bytes.Contains(inputSchema, []byte(headerKey)) && !bytes.Contains(inputSchema, []byte(`\u00`)) {
		return nil, nil
	}
	if err := jsonx.Valid(inputSchema); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	w := headerWalk{dec: json.NewDecoder(bytes.NewReader(inputSchema)), seen: map[string]bool{}}
	w.dec.UseNumber()
	w.value(w.next(), true)
	return w.found, w.err
}

// headerWalk goes over a schema token by token, so that its time does not depend on
// how deep the schema nests. The text has been checked before. err is the first
// thing that is wrong with the annotations; it ends the walk and empties found.
type headerWalk struct {
	dec   *json.Decoder
	path  []string
	found []HeaderParam
	seen  map[string]bool
	err   error
}

// next returns the next token; nil for null and when the walk is over.
func (w *headerWalk) next() json.Token {
	if w.err != nil {
		return nil
	}
	t, err := w.dec.Token()
	if err != nil {
		w.fail("cannot be read: %v", err)
	}
	return t
}

func (w *headerWalk) more() bool { return w.err == nil && w.dec.More() }

func (w *headerWalk) fail(format string, args ...any) {
	w.err, w.found = fmt.Errorf(headerKey+" "+format, args...), nil
}

// value visits a value whose first token is t: a schema, an array of them, or
// neither. reachable says that only `properties` led here.
func (w *headerWalk) value(t json.Token, reachable bool) {
	switch t {
	case json.Delim('{'):
		w.schema(reachable)
	case json.Delim('['):
		for w.more() {
			w.value(w.next(), false)
		}
		w.next()
	}
}

func (w *headerWalk) schema(reachable bool) {
	var header, typ json.Token
	headers := 0
	for w.more() {
		switch key := w.next(); key {
		case headerKey:
			headers++
			header = w.literal()
		case "type":
			typ = w.literal()
		case "properties":
			w.named(reachable)
		case "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies":
			w.named(false)
		case "const", "enum", "default", "examples": // hold data, not schemas
			w.literal()
		default:
			w.value(w.next(), false)
		}
	}
	w.next()
	switch {
	case w.err != nil || headers == 0:
	case headers > 1:
		w.fail("of %s stands there twice", w.where())
	default:
		w.annotation(header, typ, reachable)
	}
}

// named visits an object whose members are schemas under names of their own.
func (w *headerWalk) named(reachable bool) {
	t := w.next()
	if t != json.Delim('{') {
		w.value(t, false)
		return
	}
	for w.more() {
		name, _ := w.next().(string)
		w.path = append(w.path, name)
		w.value(w.next(), reachable)
		w.path = w.path[:len(w.path)-1]
	}
	w.next()
}

// literal passes over a value and returns its first token.
func (w *headerWalk) literal() json.Token {
	first := w.next()
	depth := 0
	for t := first; ; t = w.next() {
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 || w.err != nil {
			return first
		}
	}
}

func (w *headerWalk) annotation(header, typ json.Token, reachable bool) {
	name, _ := header.(string)
	kind, _ := typ.(string)
	lower := strings.ToLower(name)
	switch {
	case !token(name):
		w.fail("of %s is %.60q, not a header name", w.where(), fmt.Sprint(header))
	case !reachable || len(w.path) == 0:
		w.fail("%.60q does not stand on a property reached through properties alone", name)
	case kind != "string" && kind != "integer" && kind != "boolean":
		w.fail("of %s is on type %.60q; only string, integer and boolean can travel in a header", w.where(), fmt.Sprint(typ))
	case w.seen[lower]:
		w.fail("%.60q is used twice", name)
	case len(w.path) > limit.HeaderPathDepth:
		w.fail("%.60q stands on a property %d levels deep, more than %d", name, len(w.path), limit.HeaderPathDepth)
	case len(w.found) == maxHeaderParams:
		w.fail("stands on more than %d properties", maxHeaderParams)
	default:
		w.seen[lower] = true
		w.found = append(w.found, HeaderParam{Path: slices.Clone(w.path), Name: name, Type: kind})
	}
}

func (w *headerWalk) where() string {
	if len(w.path) == 0 {
		return "the schema itself"
	}
	return fmt.Sprintf("property %.100q", strings.Join(w.path, "."))
}

func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
