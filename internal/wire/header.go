package wire

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
)

const (
	sentinelOpen  = "=?base64?"
	sentinelClose = "?="
)

// EncodeHeader returns s as a header value: as it is where HTTP can carry it, in
// the base64 sentinel where it cannot (non-ASCII, control characters, space at an
// end) or where it would be taken for a sentinel.
func EncodeHeader(s string) string {
	if plainHeader(s) {
		return s
	}
	return sentinelOpen + base64.StdEncoding.EncodeToString([]byte(s)) + sentinelClose
}

func plainHeader(s string) bool {
	if strings.HasPrefix(s, sentinelOpen) && strings.HasSuffix(s, sentinelClose) {
		return false
	}
	if s != strings.Trim(s, " \t") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 0x20 && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// DecodeHeader undoes [EncodeHeader]. A sentinel that is no valid base64 is an
// error; a value without the exact wrapper is literal.
func DecodeHeader(v string) (string, error) {
	inner, ok := strings.CutPrefix(v, sentinelOpen)
	if !ok {
		return v, nil
	}
	if inner, ok = strings.CutSuffix(inner, sentinelClose); !ok {
		return v, nil
	}
	b, err := base64.StdEncoding.DecodeString(inner)
	if err != nil {
		return "", fmt.Errorf("header value is no valid base64: %w", err)
	}
	return string(b), nil
}

// HeaderParam is one argument of a tool that travels in a header as well.
type HeaderParam struct {
	Path []string // property names from the root of the arguments
	Name string   // header name behind Mcp-Param-
	Type string   // string, integer or boolean
}

// Header returns the full name of the header.
func (h HeaderParam) Header() string { return HeaderParamPrefix + h.Name }

// HeaderParams reads the `x-mcp-header` annotations of an input schema. An error
// means that the tool must not be offered: its header name is no token or used
// twice, its property is no string, integer or boolean, or it cannot be reached
// through `properties` alone.
func HeaderParams(inputSchema []byte) ([]HeaderParam, error) {
	if !strings.Contains(string(inputSchema), "x-mcp-header") {
		return nil, nil
	}
	w := headerWalk{seen: map[string]bool{}}
	if err := w.node(inputSchema, nil, true); err != nil {
		return nil, err
	}
	return w.found, nil
}

type headerWalk struct {
	found []HeaderParam
	seen  map[string]bool
}

// node visits a schema; reachable says that only `properties` led here.
func (w *headerWalk) node(schema []byte, path []string, reachable bool) error {
	for m := jsonx.Object(schema); m.Next(); {
		var err error
		switch key := string(m.Key); {
		case key == "x-mcp-header":
			err = w.annotation(schema, m.Value, path, reachable)
		case key == "properties" && jsonx.TypeOf(m.Value) == "object":
			err = w.properties(m.Value, path, reachable)
		case literalKeyword(key):
			// Holds data, not schemas.
		case jsonx.TypeOf(m.Value) == "object":
			err = w.node(m.Value, path, false)
		case jsonx.TypeOf(m.Value) == "array":
			for e := jsonx.Array(m.Value); e.Next() && err == nil; {
				err = w.node(e.Value, path, false)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func literalKeyword(key string) bool {
	return key == "const" || key == "enum" || key == "default" || key == "examples"
}

func (w *headerWalk) properties(props []byte, path []string, reachable bool) error {
	for m := jsonx.Object(props); m.Next(); {
		sub := append(append([]string(nil), path...), string(m.Key))
		if err := w.node(m.Value, sub, reachable); err != nil {
			return err
		}
	}
	return nil
}

func (w *headerWalk) annotation(schema, value []byte, path []string, reachable bool) error {
	where := strings.Join(path, ".")
	name, ok := jsonx.Text(value)
	if !ok || !token(name) {
		return fmt.Errorf("x-mcp-header of %q is %.80s, not a header name", where, value)
	}
	if !reachable || len(path) == 0 {
		return fmt.Errorf("x-mcp-header %q does not stand on a property reached through properties alone", name)
	}
	typ := jsonx.GetText(schema, "type")
	if typ != "string" && typ != "integer" && typ != "boolean" {
		return fmt.Errorf("x-mcp-header of %q is on type %q; only string, integer and boolean can travel in a header", where, typ)
	}
	if lower := strings.ToLower(name); w.seen[lower] {
		return fmt.Errorf("x-mcp-header %q is used twice", name)
	} else {
		w.seen[lower] = true
	}
	w.found = append(w.found, HeaderParam{Path: path, Name: name, Type: typ})
	return nil
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

// Value returns the encoded header value for the given arguments, and false when
// the argument is absent or null, or is not of a kind that travels in a header.
func (h HeaderParam) Value(arguments []byte) (string, bool) {
	raw, ok := jsonx.Path(arguments, h.Path...)
	if !ok {
		return "", false
	}
	switch jsonx.TypeOf(raw) {
	case "string":
		s, _ := jsonx.Text(raw)
		return EncodeHeader(s), true
	case "boolean":
		return string(raw), true
	case "number":
		return headerInteger(string(raw))
	}
	return "", false
}

// headerInteger formats an integer in decimal; 42.0 and 4.2e1 are 42. Fractions
// and integers that a double cannot hold exactly do not travel.
func headerInteger(raw string) (string, bool) {
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f != float64(int64(f)) || f > maxSafe || f < -maxSafe {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

const maxSafe = 1<<53 - 1
