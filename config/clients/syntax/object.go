package syntax

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Object is an object whose keys keep their order, for files that people read.
type Object []Member

// Member is one member of an Object.
type Member struct {
	Key   string
	Value any // string, bool, number, []string, map[string]string, object or plain JSON
}

// NewObject returns an object of one member.
func NewObject(key string, value any) Object { return Object{{key, value}} }

// With returns the object with a member appended.
func (o Object) With(key string, value any) Object { return append(o, Member{key, value}) }

// Add appends a member unless its value is empty.
func (o *Object) Add(key string, value any) {
	switch v := value.(type) {
	case nil:
		return
	case string:
		if v == "" {
			return
		}
	case bool:
		if !v {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	case map[string]string:
		if len(v) == 0 {
			return
		}
		value = DictObject(v)
	case Object:
		if len(v) == 0 {
			return
		}
	}
	*o = append(*o, Member{key, value})
}

// set appends a member, empty or not.
// Set appends a member.
func (o *Object) Set(key string, value any) { *o = append(*o, Member{key, value}) }

// Has reports whether there is a member of that name.
func (o Object) Has(key string) bool {
	for _, p := range o {
		if p.Key == key {
			return true
		}
	}
	return false
}

// DictObject returns the members of m in the order of their names.
func DictObject(m map[string]string) Object {
	var out Object
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out.Set(k, m[k])
	}
	return out
}

// MarshalJSON keeps the order.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := plainJSON(p.Key)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(p.Value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON is json.Marshal that leaves & and < alone.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// EncodeJSON writes o as an indented JSON document.
func EncodeJSON(o Object) ([]byte, error) {
	raw, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// EncodeYAML writes o as a YAML document.
func EncodeYAML(o Object) ([]byte, error) { return yamlText(o) }

func yamlText(v any) ([]byte, error) { return yaml.Marshal(mapSlice(v)) }

func mapSlice(v any) any {
	switch t := v.(type) {
	case Object:
		out := yaml.MapSlice{}
		for _, p := range t {
			out = append(out, yaml.MapItem{Key: p.Key, Value: mapSlice(p.Value)})
		}
		return out
	case []Object:
		out := []any{}
		for _, e := range t {
			out = append(out, mapSlice(e))
		}
		return out
	case json.Number:
		f, _ := t.Float64() // it came out of a JSON parser
		return f
	}
	return v
}

// EncodeTOML writes nested objects as tables, [a.b], after plain values.
func EncodeTOML(o Object) ([]byte, error) {
	var b bytes.Buffer
	err := tomlTable(&b, nil, o)
	return b.Bytes(), err
}

func tomlTable(b *bytes.Buffer, path []string, o Object) error {
	var tables Object
	for _, p := range o {
		switch p.Value.(type) {
		case []Object:
			tables = append(tables, p)
			continue
		case Object:
			if len(path) < 2 {
				tables = append(tables, p)
				continue
			}
		}
		value, err := tomlValue(p.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Key, err)
		}
		fmt.Fprintf(b, "%s = %s\n", tomlKey(p.Key), value)
	}
	for _, p := range tables {
		at := append(path[:len(path):len(path)], tomlKey(p.Key))
		if list, ok := p.Value.([]Object); ok {
			if err := tomlList(b, at, list); err != nil {
				return err
			}
			continue
		}
		inner := p.Value.(Object)
		if len(path) > 0 || len(inner) == 0 {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(b, "[%s]\n", strings.Join(at, "."))
		}
		if err := tomlTable(b, at, inner); err != nil {
			return err
		}
	}
	return nil
}

// tomlList writes an array of tables, whose own tables are inline.
func tomlList(b *bytes.Buffer, path []string, list []Object) error {
	for _, o := range list {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "[[%s]]\n", strings.Join(path, "."))
		if err := tomlTable(b, append(path[:len(path):len(path)], "", ""), o); err != nil {
			return err
		}
	}
	return nil
}

func tomlKey(k string) string {
	if k != "" && strings.Trim(k, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return k
	}
	return tomlString(k)
}

// tomlString writes a basic string; JSON's escapes are TOML's, but for DEL.
func tomlString(s string) string {
	raw, err := plainJSON(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return strings.ReplaceAll(string(raw), "\x7f", `\u007f`)
}

func tomlValue(v any) (string, error) {
	switch t := v.(type) {
	case string:
		return tomlString(t), nil
	case bool, int, int64, float64, json.Number:
		return fmt.Sprint(t), nil
	case []string:
		var items []string
		for _, s := range t {
			items = append(items, tomlString(s))
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	case []any:
		var items []string
		for _, e := range t {
			s, err := tomlValue(e)
			if err != nil {
				return "", err
			}
			items = append(items, s)
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	case map[string]any:
		var o Object
		for _, k := range slices.Sorted(maps.Keys(t)) {
			o.Set(k, t[k])
		}
		return tomlValue(o)
	case Object:
		var items []string
		for _, p := range t {
			s, err := tomlValue(p.Value)
			if err != nil {
				return "", err
			}
			items = append(items, tomlKey(p.Key)+" = "+s)
		}
		return "{ " + strings.Join(items, ", ") + " }", nil
	}
	return "", fmt.Errorf("a value of type %T cannot be written as TOML", v)
}
