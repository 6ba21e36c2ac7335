package jsonc

import (
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"
)

// KindName says what a value is, for messages.
func KindName(v hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}

// Literal returns a value that is a string, a number, true, false or null.
func Literal(v hujson.Value) (hujson.Literal, bool) {
	l, ok := v.Value.(hujson.Literal)
	return l, ok
}

// Plain turns a value into what encoding/json makes of it.
func Plain(v hujson.Value) (any, error) {
	c := v.Clone()
	c.Standardize()
	dec := json.NewDecoder(strings.NewReader(string(c.Pack())))
	dec.UseNumber()
	var out any
	err := dec.Decode(&out)
	return out, err
}

// MemberKey is the decoded name of a member of an object.
func MemberKey(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// Marshal writes JSON as people do: & and < stay themselves.
func Marshal(v any) (json.RawMessage, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return json.RawMessage(strings.TrimSpace(b.String())), nil
}
