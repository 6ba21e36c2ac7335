package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// object is an object whose keys keep their order, for files that people read.
type object []pair

type pair struct {
	key   string
	value any // string, bool, number, []string, map[string]string, object or plain JSON
}

// add appends a member unless its value is empty.
func (o *object) add(key string, value any) {
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
		value = dictObject(v)
	case object:
		if len(v) == 0 {
			return
		}
	}
	*o = append(*o, pair{key, value})
}

// set appends a member, empty or not.
func (o *object) set(key string, value any) { *o = append(*o, pair{key, value}) }

func (o object) has(key string) bool {
	for _, p := range o {
		if p.key == key {
			return true
		}
	}
	return false
}

func dictObject(m map[string]string) object {
	var out object
	for _, k := range sortedKeys(m) {
		out.set(k, m[k])
	}
	return out
}

// MarshalJSON keeps the order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := plainJSON(p.key)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(p.value)
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

func encodeJSON(o object) ([]byte, error) {
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

func encodeYAML(o object) ([]byte, error) { return yamlText(o) }

func yamlText(v any) ([]byte, error) { return yaml.Marshal(mapSlice(v)) }

func mapSlice(v any) any {
	switch t := v.(type) {
	case object:
		out := yaml.MapSlice{}
		for _, p := range t {
			out = append(out, yaml.MapItem{Key: p.key, Value: mapSlice(p.value)})
		}
		return out
	case []object:
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

// encodeTOML writes nested objects as tables, [a.b], after plain values.
func encodeTOML(o object) ([]byte, error) {
	var b bytes.Buffer
	err := tomlTable(&b, nil, o)
	return b.Bytes(), err
}

func tomlTable(b *bytes.Buffer, path []string, o object) error {
	var tables object
	for _, p := range o {
		switch p.value.(type) {
		case []object:
			tables = append(tables, p)
			continue
		case object:
			if len(path) < 2 {
				tables = append(tables, p)
				continue
			}
		}
		value, err := tomlValue(p.value)
		if err != nil {
			return fmt.Errorf("%s: %w", p.key, err)
		}
		fmt.Fprintf(b, "%s = %s\n", tomlKey(p.key), value)
	}
	for _, p := range tables {
		at := append(path[:len(path):len(path)], tomlKey(p.key))
		if list, ok := p.value.([]object); ok {
			if err := tomlList(b, at, list); err != nil {
				return err
			}
			continue
		}
		inner := p.value.(object)
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
func tomlList(b *bytes.Buffer, path []string, list []object) error {
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
		var o object
		for _, k := range sortedKeys(t) {
			o.set(k, t[k])
		}
		return tomlValue(o)
	case object:
		var items []string
		for _, p := range t {
			s, err := tomlValue(p.value)
			if err != nil {
				return "", err
			}
			items = append(items, tomlKey(p.key)+" = "+s)
		}
		return "{ " + strings.Join(items, ", ") + " }", nil
	}
	return "", fmt.Errorf("a value of type %T cannot be written as TOML", v)
}
