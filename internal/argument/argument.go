// Package argument reads what a user typed as a value of the type that a JSON Schema asks
// for.
//
//	value, want := argument.Parse("3", []byte(`{"type":"integer"}`)) // 3, ""
//	value, want = argument.Parse("x", []byte(`{"type":"integer"}`))  // nil, "a number"
//
// It looks at the type alone: the server checks the rest.
package argument

import (
	"strconv"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// Parse turns what a user typed into a value of the type that a property's
// schema asks for, raw; want says what was expected when it does not fit. Without a
// type, or without a schema, it stays text.
func Parse(text string, prop []byte) (value []byte, want string) {
	quoted := jsonx.Quote(text)
	isJSON := jsonx.Valid([]byte(text)) == nil
	kind := jsonx.TypeOf([]byte(text))
	switch t := jsonx.GetText(prop, "type"); t {
	case "integer", "number":
		if !isJSON || kind != "number" {
			return nil, "a number"
		}
		if _, err := strconv.ParseInt(text, 10, 64); t == "integer" && err != nil && strings.ContainsAny(text, ".eE") {
			return nil, "a whole number"
		}
		return []byte(text), ""
	case "boolean":
		if text != "true" && text != "false" {
			return nil, "true or false"
		}
		return []byte(text), ""
	case "array", "object":
		if !isJSON || kind != t {
			return nil, "a JSON " + t
		}
		return []byte(text), ""
	case "null":
		return []byte("null"), ""
	case "string":
		return quoted, ""
	}
	// No single type: numbers, booleans and structures are taken as such where the
	// schema allows anything but a plain string.
	if prop != nil && isJSON && kind != "string" && !allowsText(prop) {
		return []byte(text), ""
	}
	return quoted, ""
}

// allowsText reports whether a schema without a single type accepts a string.
func allowsText(prop []byte) bool {
	for _, key := range []string{"type", "enum"} {
		list, ok := jsonx.Get(prop, key)
		if !ok {
			continue
		}
		for e := jsonx.Array(list); e.Next(); {
			if s, isText := jsonx.Text(e.Value); isText && (key == "enum" || s == "string") {
				return true
			}
		}
		return false
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		list, _ := jsonx.Get(prop, key)
		for e := jsonx.Array(list); e.Next(); {
			if jsonx.GetText(e.Value, "type") == "string" {
				return true
			}
		}
	}
	return false
}
