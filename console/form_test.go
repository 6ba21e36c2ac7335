package console

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/jsonx"
)

const schemaOfAll = `{"type":"object","$defs":{"colour":{"enum":["red","green"]}},"required":["text","n","list"],"properties":{
	"text":{"type":"string","description":"what to say"},
	"body":{"type":"string","description":"Markdown body"},
	"n":{"type":"integer","default":5},
	"x":{"type":"number"},
	"yes":{"type":"boolean"},
	"colour":{"$ref":"#/$defs/colour"},
	"maybe":{"anyOf":[{"type":"integer"},{"type":"null"}]},
	"either":{"anyOf":[{"type":"integer"},{"type":"string"}]},
	"list":{"type":"array","items":{"type":"string"}},
	"loop":{"$ref":"#/properties/loop"},
	"lost":{"$ref":"#/nowhere"},
	"any":{}
}}`

func TestFields(t *testing.T) {
	type row struct {
		Name, Kind, Type, Default string
		Required                  bool
		Options                   int
	}
	var got []row
	for _, f := range fieldsOf([]byte(schemaOfAll)) {
		got = append(got, row{f.Name, f.Kind, f.Type, f.Default, f.Required, len(f.Options)})
	}
	want := []row{
		{"text", "text", "text", "", true, 0},
		{"body", "area", "text", "", false, 0},
		{"n", "number", "whole number", "5", true, 0},
		{"x", "number", "number", "", false, 0},
		{"yes", "choice", "boolean", "", false, 2},
		{"colour", "choice", "one of these", "", false, 2},
		{"maybe", "number", "whole number", "", false, 0},
		{"either", "text", "anything", "", false, 0},
		{"list", "json", "array, as JSON", "", true, 0},
		{"loop", "text", "anything", "", false, 0},
		{"lost", "text", "anything", "", false, 0},
		{"any", "text", "anything", "", false, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, schema := range []string{``, `{}`, `true`, `{"properties":[]}`, `{"properties":{"a":{}`, `{"properties":{` + strings.Repeat(`"x":{},`, maxFields) + `"y":{}}}`} {
		if f := fieldsOf([]byte(schema)); f != nil {
			t.Errorf("%.40s: %d fields", schema, len(f))
		}
	}
}

func TestArguments(t *testing.T) {
	for name, tt := range map[string]struct {
		form  string
		want  string
		wrong string // fields with a problem
	}{
		"all": {
			"arg.text=a+b&arg.body=one%0D%0Atwo&arg.n=7&arg.x=1.5&arg.yes=true&arg.colour=red&arg.maybe=3&arg.list=%5B1%5D",
			`{"text":"a b","body":"one\ntwo","n":7,"x":1.5,"yes":true,"colour":"red","maybe":3,"list":[1]}`, "",
		},
		"what is left out":      {"arg.text=x&arg.x=&arg.n=1&arg.list=%5B%5D", `{"text":"x","n":1,"list":[]}`, ""},
		"large numbers":         {"arg.text=x&arg.n=9007199254740993&arg.list=%5B%5D", `{"text":"x","n":9007199254740993,"list":[]}`, ""},
		"wrong types":           {"arg.text=x&arg.n=one&arg.x=two&arg.yes=perhaps&arg.list=x", "", "n x yes list"},
		"what is needed":        {"arg.x=1", "", "text n list"},
		"as JSON":               {"arg.n=one&json=%7B%22n%22%3A1%7D", `{"n":1}`, ""},
		"no JSON":               {"json=%7B", "", ""},
		"no object":             {"json=%5B%5D", "", ""},
		"text that looks alike": {"arg.text=true&arg.n=1&arg.list=%5B%5D&arg.any=7", `{"text":"true","n":1,"list":[],"any":7}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			form, err := url.ParseQuery(tt.form)
			if err != nil {
				t.Fatal(err)
			}
			fields := fieldsOf([]byte(schemaOfAll))
			args, whole, ok := arguments(fields, form)
			var wrong []string
			for _, f := range fields {
				if f.Problem != "" {
					wrong = append(wrong, f.Name)
				}
			}
			if ok != (tt.want != "") || ok && string(args) != tt.want || strings.Join(wrong, " ") != tt.wrong {
				t.Errorf("%s, wrong %v, %q", args, wrong, whole)
			}
			if !ok && whole == "" && wrong == nil {
				t.Error("nobody is told what is wrong")
			}
		})
	}
}

// Whatever a server calls a schema and a person types, it becomes an object or is
// refused, and the page can be shown.
func FuzzForm(f *testing.F) {
	f.Add(schemaOfAll, "arg.text=x&arg.n=1&arg.list=[]")
	f.Add(`{"properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, "arg.a=1")
	f.Add(`{"properties":{"a":{"enum":[1,"b"]},"a":{}}}`, "json={}")
	f.Fuzz(func(t *testing.T, schema, text string) {
		form, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		fields := fieldsOf([]byte(schema))
		args, _, ok := arguments(fields, form)
		if ok && (jsonx.TypeOf(args) != "object" || jsonx.Valid(args) != nil) {
			t.Errorf("arguments %q", args)
		}
		p := toolPage{Fields: fields, Schema: indented([]byte(schema))}
		if out := (&screen{Page: p, body: "tool"}).Body(); strings.Contains(string(out), "cannot be shown") {
			t.Errorf("%s", out)
		}
	})
}

// FuzzAnswer: whatever a tool answers can be shown.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"content":[{"type":"text","text":"{\"a\":1}"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="},{"type":"x"}],"isError":true}`)
	f.Add(`{"content":[{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zz4="},{"type":"image","mimeType":"image/png","data":"\"><script>"}]}`)
	f.Fuzz(func(t *testing.T, answer string) {
		c := &Console{world: &scene{}}
		v := c.viewRun(&run{done: true, result: []byte(answer)}, timeZero)
		out := string((&screen{Page: toolPage{Run: v}, body: "tool"}).Body())
		for _, bad := range []string{"cannot be shown", "<script", "svg&#43;xml;base64"} {
			if strings.Contains(out, bad) {
				t.Errorf("%q in %s", bad, out)
			}
		}
	})
}
