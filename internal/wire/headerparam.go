package wire

import (
	"math"
	"strconv"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// HeaderParam is one argument of a tool that travels in a header as well.
type HeaderParam struct {
	Path []string // property names from the root of the arguments
	Name string   // header name behind Mcp-Param-
	Type string   // string, integer or boolean
}

// Header returns the full name of the header.
func (h HeaderParam) Header() string { return HeaderParamPrefix + h.Name }

// Value returns the encoded header value for the given arguments, and false when
// the argument is absent or null, stands there twice, or is not of a kind that
// travels in a header.
func (h HeaderParam) Value(arguments []byte) (string, bool) {
	raw := arguments
	for _, key := range h.Path {
		var ok bool
		if raw, ok = only(raw, key); !ok {
			return "", false
		}
	}
	return headerValue(raw)
}

// fewHeaders is up to how many headers it is faster to look for each by itself.
const fewHeaders = 4

// HeaderValues calls set with all headers that have a value for the given arguments.
// Many of them are found in one reading of the arguments, whose size the client
// chooses while the server chooses their number.
func HeaderValues(params []HeaderParam, arguments []byte, set func(h HeaderParam, value string)) {
	if len(params) > fewHeaders {
		headerValues(params, 0, arguments, set)
		return
	}
	for _, h := range params {
		if v, ok := h.Value(arguments); ok {
			set(h, v)
		}
	}
}

// headerValues reads the object obj, which lies depth names deep in the arguments.
func headerValues(params []HeaderParam, depth int, obj []byte, set func(h HeaderParam, value string)) {
	byKey := map[string][]HeaderParam{}
	for _, h := range params {
		if len(h.Path) > depth {
			byKey[h.Path[depth]] = append(byKey[h.Path[depth]], h)
		}
	}
	values := make(map[string][]byte, len(byKey))
	for m := jsonx.Object(obj); m.Next(); {
		if byKey[string(m.Key)] == nil {
			continue
		}
		if _, twice := values[string(m.Key)]; twice {
			values[string(m.Key)] = nil
			continue
		}
		values[string(m.Key)] = m.Value
	}
	for key, raw := range values {
		for _, h := range byKey[key] {
			if v, ok := headerValue(raw); ok && len(h.Path) == depth+1 {
				set(h, v)
			}
		}
		if jsonx.TypeOf(raw) == "object" {
			headerValues(byKey[key], depth+1, raw, set)
		}
	}
}

func headerValue(raw []byte) (string, bool) {
	switch jsonx.TypeOf(raw) {
	case "string":
		s, ok := jsonx.StrictText(raw)
		return EncodeHeader(s), ok
	case "boolean":
		return string(raw), true
	case "number":
		return headerInteger(string(raw))
	}
	return "", false
}

// only returns the member key of obj where it has exactly one. Of two the server may
// read the other one, and who routes by the header must not be led astray.
func only(obj []byte, key string) (value []byte, ok bool) {
	for m := jsonx.Object(obj); m.Next(); {
		if string(m.Key) != key {
			continue
		}
		if ok {
			return nil, false
		}
		value, ok = m.Value, true
	}
	return value, ok
}

// maxSafe is the largest integer up to which doubles hold every one.
const maxSafe = 1<<53 - 1

// headerInteger formats an integer in decimal; 42.0 and 4.2e1 are 42. Fractions and
// integers outside the range that the protocol allows do not travel.
func headerInteger(raw string) (string, bool) {
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}
