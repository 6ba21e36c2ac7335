package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

func TestEditMeta(t *testing.T) {
	set := jsonx.Edit{Key: "k", Value: []byte(`1`)}
	del := jsonx.Edit{Key: "k"}
	for _, tt := range []struct {
		name, in string
		edits    []jsonx.Edit
		want     string
	}{
		{"new", `{"name":"t"}`, []jsonx.Edit{set}, `{"name":"t","_meta":{"k":1}}`},
		{"into an old one", `{"_meta":{"a":2},"name":"t"}`, []jsonx.Edit{set}, `{"_meta":{"a":2,"k":1},"name":"t"}`},
		{"replace", `{"_meta":{"k":2,"a":3}}`, []jsonx.Edit{set}, `{"_meta":{"k":1,"a":3}}`},
		{"no params", ``, []jsonx.Edit{set}, `{"_meta":{"k":1}}`},
		{"null params", `null`, []jsonx.Edit{set}, `{"_meta":{"k":1}}`},
		{"null meta", `{"_meta":null}`, []jsonx.Edit{set}, `{"_meta":{"k":1}}`},
		{"delete", `{"_meta":{"k":2,"a":3}}`, []jsonx.Edit{del}, `{"_meta":{"a":3}}`},
		{"delete the last one", `{"_meta":{"k":2}}`, []jsonx.Edit{del}, `{"_meta":{}}`},
		{"delete without meta", `{ "name":"t" }`, []jsonx.Edit{del}, `{ "name":"t" }`},
		{"delete what is not there", `{ "_meta": { "a":3 } }`, []jsonx.Edit{del}, `{ "_meta": { "a":3 } }`},
		{"same value", `{ "_meta":{"k":1} }`, []jsonx.Edit{set}, `{ "_meta":{"k":1} }`},
		{"no edit", `{ "a":1 }`, nil, `{ "a":1 }`},
		{"the rest keeps its bytes", `{"arguments":{ "n":9007199254740993 },"_meta":{}}`, []jsonx.Edit{set}, `{"arguments":{ "n":9007199254740993 },"_meta":{"k":1}}`},
		{"a duplicate goes", `{"_meta":{"a":1},"_meta":{"k":7}}`, []jsonx.Edit{set}, `{"_meta":{"a":1,"k":1}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, string(EditMeta([]byte(tt.in), tt.edits...))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEditMetaWithoutParams(t *testing.T) {
	if got := EditMeta(nil, jsonx.Edit{Key: "k"}); got != nil {
		t.Errorf("nothing to delete made %s", got)
	}
}

// FuzzEditMeta sets and deletes a key and looks whether that and nothing else
// happened.
func FuzzEditMeta(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `null`, `{"name":"t","arguments":{"a":1}}`, `{"_meta":{"progressToken":1,"progressToken":2}}`, `{"_meta":null}`, `{"_meta":[]}`,
		`{"name":"a","n\u0061me":"b"}`, `{"cursor":""}`, `{"a":1`, ` {"name" : "x" } `,
	} {
		f.Add([]byte(s), "k")
		f.Add([]byte(s), mcp.MetaProgress)
	}
	f.Fuzz(func(t *testing.T, params []byte, key string) {
		if jsonx.Valid(params) != nil || jsonx.Valid(jsonx.Quote(key)) != nil {
			return
		}
		key, _ = jsonx.Text(jsonx.Quote(key))
		out := EditMeta(params, jsonx.Edit{Key: key, Value: []byte(`[7]`)})
		if err := jsonx.Valid(out); err != nil {
			t.Fatalf("%q became %q: %v", params, out, err)
		}
		if v, _ := jsonx.Path(out, "_meta", key); string(v) != `[7]` {
			t.Fatalf("%q became %q, which has %q", params, out, v)
		}
		for _, k := range []string{"name", "arguments", "cursor"} {
			before, _ := jsonx.Get(params, k)
			if after, _ := jsonx.Get(out, k); string(before) != string(after) {
				t.Fatalf("%q: %s was %q and is %q", params, k, before, after)
			}
		}
		back := EditMeta(out, jsonx.Edit{Key: key})
		if _, ok := jsonx.Path(back, "_meta", key); ok {
			t.Fatalf("%q became %q", out, back)
		}
	})
}
