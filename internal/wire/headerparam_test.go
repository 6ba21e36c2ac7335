package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/jsonx"
)

func TestHeaderParams(t *testing.T) {
	for _, tt := range []struct {
		name, schema string
		want         []HeaderParam
	}{
		{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, nil},
		{"no schema", ``, nil},
		{
			"all kinds", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"x-mcp-header":"b-1","type":"integer"},"c":{"type":"boolean","x-mcp-header":"C"}}}`,
			[]HeaderParam{{[]string{"a"}, "A", "string"}, {[]string{"b"}, "b-1", "integer"}, {[]string{"c"}, "C", "boolean"}},
		},
		{
			"nested", `{"properties":{"o":{"type":"object","properties":{"p":{"properties":{"q":{"type":"string","x-mcp-header":"Q"}}},"r":{"type":"string","x-mcp-header":"R"}}},"z":{"type":"string","x-mcp-header":"Z"}}}`,
			[]HeaderParam{{[]string{"o", "p", "q"}, "Q", "string"}, {[]string{"o", "r"}, "R", "string"}, {[]string{"z"}, "Z", "string"}},
		},
		{"escaped names", `{"\u0070roperties":{"\u0061":{"type":"string","x-mcp-h\u0065ader":"\u0041"}}}`, []HeaderParam{{[]string{"a"}, "A", "string"}}},
		{"a property with the annotation's name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, nil},
		{
			"a property with a keyword's name", `{"properties":{"properties":{"type":"string","x-mcp-header":"P"},"items":{"type":"string","x-mcp-header":"I"}}}`,
			[]HeaderParam{{[]string{"properties"}, "P", "string"}, {[]string{"items"}, "I", "string"}},
		},
		{"a definition with the annotation's name", `{"$defs":{"x-mcp-header":{"type":"string"}}}`, nil},
		{"data", `{"properties":{"a":{"const":{"x-mcp-header":1},"enum":[{"x-mcp-header":1}],"default":{"x-mcp-header":1},"examples":[{"x-mcp-header":1}]}}}`, nil},
		{"in a description", `{"description":"x-mcp-header","title":"\u00e9"}`, nil},
		{"boolean schemas", `{"properties":{"a":true,"x":{"type":"string","x-mcp-header":"X"}},"additionalProperties":false}`, []HeaderParam{{[]string{"x"}, "X", "string"}}},
		{"huge number", `{"properties":{"a":{"type":"integer","maximum":1e400,"x-mcp-header":"A"}}}`, []HeaderParam{{[]string{"a"}, "A", "integer"}}},
		{"every token character", `{"properties":{"a":{"type":"string","x-mcp-header":"!#$%&'*+-.^_` + "`" + `|~09azAZ"}}}`, []HeaderParam{{[]string{"a"}, "!#$%&'*+-.^_`|~09azAZ", "string"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := HeaderParams([]byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestHeaderParamsRefuses(t *testing.T) {
	on := func(typ, header string) string {
		return `{"properties":{"v":{"type":` + typ + `,"x-mcp-header":` + header + `}}}`
	}
	a := `{"type":"string","x-mcp-header":"A"}`
	for _, tt := range []struct{ name, schema, want string }{
		{"empty", on(`"string"`, `""`), "not a header name"},
		{"number", on(`"string"`, `5`), "not a header name"},
		{"null", on(`"string"`, `null`), "not a header name"},
		{"object", on(`"string"`, `{"a":[1]}`), "not a header name"},
		{"space", on(`"string"`, `"My Region"`), "not a header name"},
		{"colon", on(`"string"`, `"Region:1"`), "not a header name"},
		{"non-ASCII", on(`"string"`, `"Région"`), "not a header name"},
		{"tab", on(`"string"`, `"Region\t1"`), "not a header name"},
		{"line break", on(`"string"`, `"Region\r\nEvil: 1"`), "not a header name"},
		{"NUL", on(`"string"`, `"Region\u0000"`), "not a header name"},
		{"type object", on(`"object"`, `"A"`), "on type"},
		{"type array", on(`"array"`, `"A"`), "on type"},
		{"type null", on(`"null"`, `"A"`), "on type"},
		{"type number", on(`"number"`, `"A"`), "on type"},
		{"two types", on(`["string","null"]`, `"A"`), "on type"},
		{"no type", `{"properties":{"v":{"x-mcp-header":"A"}}}`, "on type"},
		{"same name", `{"properties":{"a":` + a + `,"b":` + a + `}}`, "used twice"},
		{"same name in another case", `{"properties":{"a":` + a + `,"b":{"type":"string","x-mcp-header":"a"}}}`, "used twice"},
		{"same name nested", `{"properties":{"a":` + a + `,"o":{"properties":{"a":` + a + `}}}}`, "used twice"},
		{"twice on one property", `{"properties":{"a":{"type":"string","x-mcp-header":"A","x-mcp-header":"B"}}}`, "stands there twice"},
		{"on the root", a, "properties alone"},
		{"in items", `{"properties":{"l":{"type":"array","items":` + a + `}}}`, "properties alone"},
		{"in prefixItems", `{"properties":{"l":{"prefixItems":[` + a + `]}}}`, "properties alone"},
		{"in anyOf", `{"properties":{"l":{"anyOf":[{"type":"null"},` + a + `]}}}`, "properties alone"},
		{"properties in anyOf", `{"anyOf":[{"properties":{"l":` + a + `}}]}`, "properties alone"},
		{"in not", `{"properties":{"l":{"not":` + a + `}}}`, "properties alone"},
		{"in if", `{"if":{"properties":{"l":` + a + `}}}`, "properties alone"},
		{"in $defs", `{"$defs":{"d":` + a + `}}`, "properties alone"},
		{"properties in $defs", `{"$defs":{"d":{"properties":{"x":` + a + `}}}}`, "properties alone"},
		{"in patternProperties", `{"patternProperties":{"^x":` + a + `}}`, "properties alone"},
		{"in additionalProperties", `{"additionalProperties":` + a + `}`, "properties alone"},
		{"in an unknown keyword", `{"x-foo":{"deep":[[` + a + `]]}}`, "properties alone"},
		{"properties that are an array", `{"properties":[` + a + `]}`, "properties alone"},
		{"escaped", `{"properties":{"v":{"type":"number","x-mcp-\u0068eader":"A"}}}`, "on type"},
		{"cut off", `{"properties":{"v":` + a, "input schema"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := HeaderParams([]byte(tt.schema))
			if err == nil || !strings.Contains(err.Error(), tt.want) || got != nil {
				t.Errorf("got %v, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestHeaderParamsBounds(t *testing.T) {
	var props strings.Builder
	for i := range 101 {
		fmt.Fprintf(&props, `"p%d":{"type":"string","x-mcp-header":"H%d"},`, i, i)
	}
	all := strings.TrimSuffix(props.String(), ",")
	if _, err := HeaderParams([]byte(`{"properties":{` + all + `}}`)); err == nil {
		t.Error("101 headers are accepted")
	}
	hundred := all[:strings.LastIndex(all, `,"p100"`)]
	if got, err := HeaderParams([]byte(`{"properties":{` + hundred + `}}`)); err != nil || len(got) != 100 {
		t.Errorf("100 headers: %d, %v", len(got), err)
	}
	// Nested as deep as a message may be, and long below: one pass must do.
	depth := 490
	deep := strings.Repeat(`{"properties":{"a":`, depth) + `{"type":"string","x-mcp-header":"A","description":"` + strings.Repeat("x", 4<<20) + `"}` + strings.Repeat(`}}`, depth)
	if got, err := HeaderParams([]byte(deep)); err == nil || !strings.Contains(err.Error(), "490 levels deep") {
		t.Errorf("deep schema: %d headers, %v", len(got), err)
	}
	long := strings.Repeat("n", 1<<20)
	if _, err := HeaderParams([]byte(`{"properties":{"` + long + `":{"type":"` + long + `","x-mcp-header":"A"}}}`)); err == nil || len(err.Error()) > 600 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestHeaderParamValue(t *testing.T) {
	for _, tt := range []struct {
		path, args, want string
		ok               bool
	}{
		{"a", `{"a":"x"}`, "x", true},
		{"a", `{"a":""}`, "", true},
		{"a", `{"a":"\u00e9"}`, "=?base64?w6k=?=", true},
		{"a", `{"a":"x\r\ny"}`, "=?base64?eA0KeQ==?=", true},
		{"a", `{"a":true}`, "true", true},
		{"a", `{"a":false}`, "false", true},
		{"a", `{"a":42}`, "42", true},
		{"a", `{"a":-7}`, "-7", true},
		{"a", `{"a":42.0}`, "42", true},
		{"a", `{"a":4.2e1}`, "42", true},
		{"a", `{"a":-0}`, "0", true},
		{"a", `{"a":9007199254740991}`, "9007199254740991", true},
		{"a", `{"a":-9007199254740991}`, "-9007199254740991", true},
		{"a", `{"a":9007199254740992}`, "", false},
		{"a", `{"a":9007199254740993}`, "", false},
		{"a", `{"a":-9007199254740992}`, "", false},
		{"a", `{"a":1.5}`, "", false},
		{"a", `{"a":1e300}`, "", false},
		{"a", `{"a":1e400}`, "", false},
		{"a", `{"a":null}`, "", false},
		{"a", `{"a":[1]}`, "", false},
		{"a", `{"a":{}}`, "", false},
		{"a", `{"a":"\ud800"}`, "", false},
		{"a", `{}`, "", false},
		{"a", ``, "", false},
		{"a", `[]`, "", false},
		{"a", `{"A":"x"}`, "", false},
		{"a", `{"a":"x","a":"y"}`, "", false},
		{"a", `{"a":"x","\u0061":"y"}`, "", false},
		{"a.b", `{"a":{"b":"x"}}`, "x", true},
		{"a.b", `{"a":{"b":"x"},"a":{"b":"y"}}`, "", false},
		{"a.b", `{"a":null}`, "", false},
		{"a.b", `{"a":"b"}`, "", false},
	} {
		h := HeaderParam{Path: strings.Split(tt.path, "."), Name: "N", Type: "string"}
		if got, ok := h.Value([]byte(tt.args)); got != tt.want || ok != tt.ok {
			t.Errorf("%s of %s = %q, %v, want %q, %v", tt.path, tt.args, got, ok, tt.want, tt.ok)
		}
	}
	if got := (HeaderParam{Name: "Region"}).Header(); got != "Mcp-Param-Region" {
		t.Errorf("Header() = %q", got)
	}
}

// FuzzHeaderParams checks that what is accepted can be sent: names are tokens and
// differ, and the schema, decoded by other means, has the annotation where the path
// says.
func FuzzHeaderParams(f *testing.F) {
	for _, s := range []string{
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"o":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A\r\n"}}}`,
		`{"anyOf":[{"x-mcp-header":"A"}],"$defs":{"x-mcp-header":{}}}`,
		`{"properties":{"x-mcp-header":{"x-mcp-h\u0065ader":"B","type":"boolean"}}}`,
		`{"properties":[{"x-mcp-header":1}],"x-mcp-header":{`, `"x-mcp-header"`, ``,
	} {
		f.Add([]byte(s), []byte(`{"a":"x","o":{"b":1.0}}`))
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		params, err := HeaderParams(schema)
		if err != nil && params != nil {
			t.Fatalf("%q: %v and %v", schema, params, err)
		}
		seen := map[string]bool{}
		for _, p := range params {
			lower := strings.ToLower(p.Name)
			if !token(p.Name) || seen[lower] || len(p.Path) == 0 {
				t.Fatalf("%q: %+v", schema, p)
			}
			seen[lower] = true
			v, ok := p.Value(args)
			if strings.ContainsFunc(v, isControl) || !ok && v != "" {
				t.Fatalf("%q, %q: %q, %v", schema, args, v, ok)
			}
		}
		if _, err := jsonx.Canonical(schema); err == nil { // no duplicates
			checkAnnotations(t, schema, params)
		}
	})
}

func checkAnnotations(t *testing.T, schema []byte, params []HeaderParam) {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil || params == nil {
		return // a number that encoding/json cannot hold
	}
	for _, p := range params {
		node := root
		for _, key := range p.Path {
			props, _ := node["properties"].(map[string]any)
			node, _ = props[key].(map[string]any)
		}
		if node["x-mcp-header"] != p.Name || node["type"] != p.Type {
			t.Fatalf("%q: %+v is not there, but %v", schema, p, node)
		}
	}
}
