package pins

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
)

func TestNormalForm(t *testing.T) {
	for in, want := range map[string]string{
		`{"name":"x"}`: `{"name":"x"}`,
		`{"required":["b","a"],"inputSchema":{"required":["b","a","\u0061b"]}}`:                          `{"inputSchema":{"required":["a","ab","b"]},"required":["b","a"]}`,
		`{"inputSchema":{"required":["b",1,"a"],"type":["b",null],"enum":["b","a"]}}`:                    `{"inputSchema":{"enum":["b","a"],"required":["b",1,"a"],"type":["b",null]}}`,
		`{"inputSchema":{"properties":{"required":{"type":["b","a"]},"type":["z","a"]}}}`:                `{"inputSchema":{"properties":{"required":{"type":["a","b"]},"type":["z","a"]}}}`,
		`{"inputSchema":{"anyOf":[{"type":["b","a"]},["type",["b","a"]]],"items":[{"type":["b","a"]}]}}`: `{"inputSchema":{"anyOf":[{"type":["a","b"]},["type",["b","a"]]],"items":[{"type":["b","a"]}]}}`,
		`{"inputSchema":{"const":{"type":["b","a"]},"default":-1.5e3,"not":{"type":["b","a"]}}}`:         `{"inputSchema":{"const":{"type":["b","a"]},"default":-1.5e3,"not":{"type":["a","b"]}}}`,
		`{"inputSchema":[],"outputSchema":{"required":[],"a\"]":"}\\","type":["\"b","\"a"]}}`:            `{"inputSchema":[],"outputSchema":{"a\"]":"}\\","required":[],"type":["\"a","\"b"]}}`,
		`{"inputSchema":7}`: `{"inputSchema":7}`, `[]`: `[]`, `7`: `7`, `"a"`: `"a"`,
	} {
		if got, err := normalForm([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", in, got, err, want)
		}
	}
	for _, in := range []string{`{"a":1,"a":2}`, `{"inputSchema":{"required":["b","a"],"required":[]}}`, `{`, ``} {
		if got, err := normalForm([]byte(in)); err == nil {
			t.Errorf("%s has the form %s", in, got)
		}
	}
}

// FuzzNormalForm compares with decoding, sorting and encoding again.
func FuzzNormalForm(f *testing.F) {
	f.Add([]byte(`{"inputSchema":{"required":["b","a"],"properties":{"x":{"anyOf":[{"type":["b","a"]}]}}}}`))
	f.Add([]byte(`{"outputSchema":{"$defs":{"a":{"if":{"type":["b","a",1]}}},"enum":["b","a"]},"type":["b","a"]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if jsonx.Valid(raw) != nil {
			return
		}
		got, err := normalForm(raw)
		canonical, cerr := jsonx.Canonical(raw)
		if (err == nil) != (cerr == nil) {
			t.Fatalf("%q: %v, want %v", raw, err, cerr)
		}
		if err != nil {
			return
		}
		if want := decodedForm(t, canonical); !bytes.Equal(got, want) {
			t.Fatalf("%q\n got %s\nwant %s", raw, got, want)
		}
		if again, err := normalForm(got); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%s became %s, %v", got, again, err)
		}
	})
}

func decodedForm(t *testing.T, canonical []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if tool, ok := v.(map[string]any); ok {
		sortDecoded(tool["inputSchema"])
		sortDecoded(tool["outputSchema"])
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	form, err := jsonx.Canonical(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return form
}

func sortDecoded(v any) {
	schema, _ := v.(map[string]any)
	for key, v := range schema {
		named, _ := v.(map[string]any)
		list, _ := v.([]any)
		switch key {
		case "required", "type":
			if !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok }) {
				slices.SortFunc(list, func(a, b any) int { return bytes.Compare(text(a), text(b)) })
			}
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			for _, v := range named {
				sortDecoded(v)
			}
		case "items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames", "not", "if", "then", "else":
			sortDecoded(v)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			for _, v := range list {
				sortDecoded(v)
			}
		}
	}
}

// text is a decoded string as the canonical form writes it.
func text(v any) []byte {
	form, _ := jsonx.Canonical(jsonx.Quote(v.(string)))
	return form
}
