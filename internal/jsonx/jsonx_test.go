package jsonx

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var seeds = []string{
	`{}`, `[]`, `null`, `true`, `0`, `-0.5e+10`, `"a\u00e9\n"`, `{"a":{"b":[1,2,{"c":null}]}}`,
	` { "x" : 9007199254740993 , "y":"ż" } `, `{"a":1,"a":2}`, `{"a":1,}`, `[1,]`, `{,}`, `[,]`, `01`, `1.`, `1e`, `-`,
	`"`, `"\x"`, `"\u12g4"`, `nul`, `{"a"}`, `{"a":}`, `{"a" 1}`, `[1 2]`, "\"\x01\"", "\"\xff\"", `{} {}`, `{"a":1]`,
	`1e400`, `"\ud800"`, ``, ` `, `[[[[[]]]]]`,
}

func TestValidAgreesWithEncodingJSON(t *testing.T) {
	for _, s := range seeds {
		want := json.Valid([]byte(s)) && !strings.Contains(s, "\xff")
		if got := Valid([]byte(s)) == nil; got != want {
			t.Errorf("Valid(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestValidBounds(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := Valid(deep(MaxDepth)); err != nil {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if Valid(deep(MaxDepth+1)) == nil {
		t.Errorf("depth %d is accepted", MaxDepth+1)
	}
	if Valid([]byte(strings.Repeat("9", 1001))) == nil {
		t.Error("a number of 1,001 digits is accepted")
	}
}

func TestGet(t *testing.T) {
	obj := []byte(`{"a":{"b": [1, 2]},"\u0063":"x\ny","n":null}`)
	for _, tt := range []struct {
		path []string
		want string
		ok   bool
	}{
		{[]string{"a"}, `{"b": [1, 2]}`, true},
		{[]string{"a", "b"}, `[1, 2]`, true},
		{[]string{"c"}, `"x\ny"`, true},
		{[]string{"A"}, ``, false},
		{[]string{"n", "x"}, ``, false},
	} {
		got, ok := Path(obj, tt.path...)
		if string(got) != tt.want || ok != tt.ok {
			t.Errorf("Path(%q) = %s, %v, want %s, %v", tt.path, got, ok, tt.want, tt.ok)
		}
	}
	if got := GetText(obj, "c"); got != "x\ny" {
		t.Errorf("GetText = %q", got)
	}
}

func TestApply(t *testing.T) {
	for _, tt := range []struct {
		name, obj string
		edits     []Edit
		want      string
	}{
		{"replace keeps place and spaces", `{ "a" : 1 , "b":2 }`, []Edit{{"a", []byte(`[9]`)}}, `{"a" : [9],"b":2}`},
		{"append", `{"a":1}`, []Edit{{"b", []byte(`"x"`)}}, `{"a":1,"b":"x"}`},
		{"append to empty", `{}`, []Edit{{"b", []byte(`2`)}}, `{"b":2}`},
		{"no object", `null`, []Edit{{"b", []byte(`2`)}}, `{"b":2}`},
		{"nothing", ``, []Edit{{"b", []byte(`2`)}}, `{"b":2}`},
		{"delete", `{"a":1,"b":2,"c":3}`, []Edit{{"b", nil}}, `{"a":1,"c":3}`},
		{"delete the only one", `{"a":1}`, []Edit{{"a", nil}}, `{}`},
		{"delete what is not there", `{ "a":1 }`, []Edit{{"b", nil}}, `{ "a":1 }`},
		{"a duplicate goes too", `{"a":1,"a":2}`, []Edit{{"a", []byte(`3`)}}, `{"a":3}`},
		{"several", `{"a":1,"b":2}`, []Edit{{"b", nil}, {"a", []byte(`0`)}, {"z", []byte(`7`)}}, `{"a":0,"z":7}`},
		{"big integers stay", `{"n":9007199254740993}`, []Edit{{"z", []byte(`1`)}}, `{"n":9007199254740993,"z":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, string(Apply([]byte(tt.obj), tt.edits...))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{`{"b":1,"a":[ 1 , 2 ]}`, `{"a":[1,2],"b":1}`},
		{`"\u00e9"`, `"é"`},
		{`9007199254740993`, `9007199254740993`},
	} {
		got, err := Canonical([]byte(tt.a))
		if err != nil || string(got) != tt.b {
			t.Errorf("Canonical(%s) = %s, %v, want %s", tt.a, got, err, tt.b)
		}
	}
	a, _ := Hash([]byte(`{"n":9007199254740993}`))
	b, _ := Hash([]byte(`{"n":9007199254740992}`))
	if a == b {
		t.Error("2^53+1 and 2^53 have one hash")
	}
	if _, err := Canonical([]byte(`{"a":1,"a":2}`)); err == nil {
		t.Error("duplicate members are accepted")
	}
}

func TestTypeOf(t *testing.T) {
	for raw, want := range map[string]string{" {}": "object", "[]": "array", `"a"`: "string", "1": "number", "-1": "number", "true": "boolean", "null": "null", "": "nothing"} {
		if got := TypeOf([]byte(raw)); got != want {
			t.Errorf("TypeOf(%q) = %q, want %q", raw, got, want)
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if Valid(b) != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("%q: accepted, encoding/json refuses it", b)
		}
		out := Apply(b, Edit{"k", []byte(`1`)})
		if Valid(out) != nil {
			t.Fatalf("%q: the edit made %q", b, out)
		}
		if v, ok := Get(out, "k"); !ok || string(v) != "1" {
			t.Fatalf("%q: the edit is lost in %q", b, out)
		}
		if TypeOf(b) == "object" {
			if back := Delete(Delete(out, "k"), "k"); Valid(back) != nil {
				t.Fatalf("%q: delete made %q", out, back)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("a\"\\\n\x00é\xff\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		q := Quote(s)
		if Valid(q) != nil {
			t.Fatalf("Quote(%q) = %s", s, q)
		}
		got, ok := Text(q)
		if want := strings.ToValidUTF8(s, "\uFFFD"); !ok || len(want) == len(s) && got != want {
			t.Fatalf("Text(Quote(%q)) = %q", s, got)
		}
		if c, err := Canonical(q); err != nil || !bytes.HasPrefix(c, []byte(`"`)) {
			t.Fatalf("Canonical(%s) = %s, %v", q, c, err)
		}
	})
}
