package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// paramSeeds are params and attacks on their readers.
var paramSeeds = []string{
	`{}`, `[]`, `null`, `{"name":"t","arguments":{"a":1}}`, `{"uri":"file:///a b"}`, `{"taskId":"1"}`, `{"cursor":""}`,
	`{"_meta":{"progressToken":1,"progressToken":2}}`, `{"_meta":null}`, `{"_meta":[]}`, `{"name":"a","name":"b"}`,
	`{"name":"a","Name":"b"}`, `{"name":"a","n\u0061me":"b"}`, `{"name":"a","name\u0000":"b"}`, `{"ta\u017fkId":"1"}`,
	`{"name":"\ud800"}`, `{"requestState":"x","inputResponses":{}}`, `{"arguments":{"a":1,"a":2}}`, `{"name":5}`, `{"a":1`, ` {"name" : "x" } `,
}

func TestReadParams(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     Params
	}{
		{"absent", "", Params{}},
		{"empty", `{}`, Params{}},
		{"tool call", `{"name":"t","arguments":{"a": 1},"_meta":{"x":1},"other":2}`, Params{Name: "t", Arguments: []byte(`{"a": 1}`), Meta: []byte(`{"x":1}`)}},
		{"resource", `{"uri":"file:///\u00e9"}`, Params{URI: "file:///é"}},
		{"task", `{"taskId":"7"}`, Params{TaskID: "7"}},
		{"empty cursor", `{"cursor":""}`, Params{Cursor: []byte(`""`)}},
		{"request state", `{"requestState":""}`, Params{Retry: true}},
		{"input responses", `{"inputResponses":{}}`, Params{Retry: true}},
		{"null is absent", `{"name":null,"uri":null,"taskId":null,"arguments":null,"_meta":null,"cursor":null,"requestState":null,"inputResponses":null}`, Params{}},
		{"escaped names", `{"n\u0061me":"t"}`, Params{Name: "t"}},
		{"spaces", " { \"name\" : \"t\" } ", Params{Name: "t"}},
		{"duplicates in arguments are the server's", `{"arguments":{"a":1,"a":2,"A":3}}`, Params{Arguments: []byte(`{"a":1,"a":2,"A":3}`)}},
		{"duplicates deep in meta are nobody's", `{"_meta":{"x":{"a":1,"a":2}}}`, Params{Meta: []byte(`{"x":{"a":1,"a":2}}`)}},
		{"unknown duplicates", `{"x":1,"x":2}`, Params{}},
		{"name with NUL is another name", `{"name":"t\u0000"}`, Params{Name: "t\x00"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var in []byte
			if tt.in != "" {
				in = []byte(tt.in)
			}
			got, err := ReadParams(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestReadParamsRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", ` `, "params is nothing"},
		{"array", `[1]`, "params is array"},
		{"cut off", `{"name":"t"`, "does not end"},
		{"number name", `{"name":5}`, `"name" of params is number`},
		{"half a pair", `{"name":"t\ud800"}`, `"name" of params is not valid text`},
		{"half a pair in the uri", `{"uri":"\udc00"}`, `"uri" of params is not valid text`},
		{"object task", `{"taskId":{}}`, `"taskId" of params is object`},
		{"array meta", `{"_meta":[]}`, `"_meta" of params is array`},
		{"duplicate name", `{"name":"a","name":"b"}`, `"name" appears twice`},
		{"duplicate null name", `{"name":null,"name":"b"}`, `"name" appears twice`},
		{"duplicate through an escape", `{"name":"a","\u006eame":"b"}`, `"name" appears twice`},
		{"duplicate arguments", `{"arguments":{},"arguments":{}}`, `"arguments" appears twice`},
		{"duplicate meta", `{"_meta":{},"_meta":{}}`, `"_meta" appears twice`},
		{"duplicate in meta", `{"_meta":{"progressToken":1,"progressToken":2}}`, `"progressToken" appears twice`},
		{"duplicate in meta through an escape", `{"_meta":{"a":1,"\u0061":2}}`, `"a" appears twice`},
		{"case", `{"name":"a","Name":"b"}`, `"Name" can be taken for "name"`},
		{"case alone", `{"NAME":"b"}`, `"NAME" can be taken for "name"`},
		{"case in the middle", `{"taskid":"b"}`, `"taskid" can be taken for "taskId"`},
		{"long s and Kelvin", `{"ta\u017f\u212aId":"b"}`, `can be taken for "taskId"`},
		{"NUL", `{"name":"a","name\u0000":"b"}`, `can be taken for "name"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadParams([]byte(tt.in))
			if err == nil || err.Code != CodeInvalidParams || !strings.Contains(err.Message, tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if diff := cmp.Diff(Params{}, got); diff != "" {
				t.Errorf("refused params have members\n%s", diff)
			}
		})
	}
}

func TestNameFor(t *testing.T) {
	p := Params{Name: "n", URI: "u", TaskID: "t"}
	for _, tt := range []struct {
		method, want string
		ok           bool
	}{
		{MethodToolsCall, "n", true},
		{MethodPromptsGet, "n", true},
		{MethodResourcesRead, "u", true},
		{"tasks/get", "t", true},
		{MethodToolsList, "", false},
		{MethodSubscribe, "", false},
	} {
		if got, ok := p.NameFor(tt.method); got != tt.want || ok != tt.ok {
			t.Errorf("NameFor(%q) = %q, %v", tt.method, got, ok)
		}
		if want := strings.TrimSuffix(tt.method+" "+tt.want, " "); p.Describe(tt.method) != want {
			t.Errorf("Describe(%q) = %q, want %q", tt.method, p.Describe(tt.method), want)
		}
	}
	if _, ok := (&Params{}).NameFor("tasks/list"); ok {
		t.Error("a task method without a task has a name")
	}
}

// FuzzReadParams holds accepted params against encoding/json: both must see the same.
func FuzzReadParams(f *testing.F) {
	for _, s := range paramSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, bad := ReadParams(raw)
		if bad != nil || raw == nil || jsonx.Valid(raw) != nil {
			return
		}
		var std struct {
			Name      string          `json:"name"`
			URI       string          `json:"uri"`
			TaskID    string          `json:"taskId"`
			Arguments json.RawMessage `json:"arguments"`
			Meta      json.RawMessage `json:"_meta"`
			Cursor    json.RawMessage `json:"cursor"`
			Responses json.RawMessage `json:"inputResponses"`
			State     json.RawMessage `json:"requestState"`
		}
		if err := json.Unmarshal(raw, &std); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		some := func(raw json.RawMessage) []byte {
			if raw == nil || string(raw) == "null" {
				return nil
			}
			return raw
		}
		want := Params{
			std.Name, std.URI, std.TaskID, some(std.Arguments), some(std.Meta), some(std.Cursor),
			some(std.Responses) != nil || some(std.State) != nil,
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Fatalf("%q (-encoding/json +ReadParams)\n%s", raw, diff)
		}
	})
}
