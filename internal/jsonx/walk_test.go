package jsonx

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type member2 struct{ Key, Value string }

func members(b []byte) (out []member2, err error) {
	m := Object(b)
	for m.Next() {
		out = append(out, member2{string(m.Key), string(m.Value)})
	}
	return out, m.Err()
}

func TestMembers(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []member2
		ok   bool
	}{
		{`{}`, nil, true},
		{" \t\r\n{ } ", nil, true},
		{`{"a":1}`, []member2{{"a", "1"}}, true},
		{` { "a" : [1, 2] , "b" : "x" } `, []member2{{"a", "[1, 2]"}, {"b", `"x"`}}, true},
		{`{"a":1,"a":2}`, []member2{{"a", "1"}, {"a", "2"}}, true},
		{`{"\u0061\/":null}`, []member2{{"a/", "null"}}, true},
		{`{"a":1,}`, []member2{{"a", "1"}}, false},
		{`{"a":1 "b":2}`, []member2{{"a", "1"}}, false},
		{`{"a":1,,"b":2}`, []member2{{"a", "1"}}, false},
		{`{,"a":1}`, nil, false},
		{`{"a":1}x`, []member2{{"a", "1"}}, false},
		{`{"a":1}{}`, []member2{{"a", "1"}}, false},
		{`{"a":1`, []member2{{"a", "1"}}, false},
		{`{"a":1]`, []member2{{"a", "1"}}, false},
		{`{`, nil, false},
		{`[]`, nil, false},
		{`null`, nil, false},
		{``, nil, false},
	} {
		got, err := members([]byte(tt.in))
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != tt.ok {
			t.Errorf("%q: %v (-want +got)\n%s", tt.in, err, diff)
		}
	}
}

func TestMembersAfterTheEnd(t *testing.T) {
	m := Object([]byte(`{"a":1}`))
	if !m.Next() || m.Next() || m.Next() || m.Key != nil || m.Value != nil || m.Err() != nil {
		t.Errorf("got %q %q %v", m.Key, m.Value, m.Err())
	}
	m = Object([]byte(`{"a":1,"b":[1,`))
	if !m.Next() || m.Next() {
		t.Fatal("the cut member is returned")
	}
	if string(m.Key) != "b" || m.Value != nil || m.Err() == nil {
		t.Errorf("cut member: got %q %q %v", m.Key, m.Value, m.Err())
	}
	var zero Members
	if zero.Next() {
		t.Error("the zero value has a member")
	}
}

// TestValueCannotGrow makes sure that appending to a value leaves its neighbours.
func TestValueCannotGrow(t *testing.T) {
	obj := []byte(`{"a":1,"b":2}`)
	v, _ := Get(obj, "a")
	_ = append(v, `9999`...)
	arr := []byte(`[1,2]`)
	e := Array(arr)
	e.Next()
	_ = append(e.Value, `9999`...)
	if string(obj) != `{"a":1,"b":2}` || string(arr) != `[1,2]` {
		t.Errorf("the neighbour was overwritten: %s %s", obj, arr)
	}
}

func elements(b []byte) (out []string, err error) {
	e := Array(b)
	for e.Next() {
		out = append(out, string(e.Value))
	}
	return out, e.Err()
}

func TestElements(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
		ok   bool
	}{
		{`[]`, nil, true},
		{` [ 1 , {"a":[2]} ,"x" ] `, []string{"1", `{"a":[2]}`, `"x"`}, true},
		{`[1,]`, []string{"1"}, false},
		{`[,1]`, nil, false},
		{`[1 2]`, []string{"1"}, false},
		{`[1]x`, []string{"1"}, false},
		{`[1`, []string{"1"}, false},
		{`[1}`, []string{"1"}, false},
		{`[`, nil, false},
		{`{}`, nil, false},
		{``, nil, false},
	} {
		got, err := elements([]byte(tt.in))
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != tt.ok {
			t.Errorf("%q: %v (-want +got)\n%s", tt.in, err, diff)
		}
	}
	var zero Elements
	if zero.Next() {
		t.Error("the zero value has an element")
	}
}

func TestPath(t *testing.T) {
	obj := []byte(`{"a":{"b": [1, 2]},"\u0063":"x\ny","n":null,"a":3}`)
	for _, tt := range []struct {
		path []string
		want string
		ok   bool
	}{
		{nil, string(obj), true},
		{[]string{"a"}, `{"b": [1, 2]}`, true}, // the first of two
		{[]string{"a", "b"}, `[1, 2]`, true},
		{[]string{"c"}, `"x\ny"`, true},
		{[]string{"A"}, ``, false},
		{[]string{"n", "x"}, ``, false},
		{[]string{"a", "b", "0"}, ``, false},
	} {
		got, ok := Path(obj, tt.path...)
		if string(got) != tt.want || ok != tt.ok {
			t.Errorf("Path(%q) = %s, %v, want %s, %v", tt.path, got, ok, tt.want, tt.ok)
		}
	}
	if got := GetText(obj, "c"); got != "x\ny" {
		t.Errorf("GetText = %q", got)
	}
	if got := GetText(obj, "n"); got != "" {
		t.Errorf("GetText of null = %q", got)
	}
}

func TestTypeOf(t *testing.T) {
	for raw, want := range map[string]string{
		" {}": "object", "\r\n\t[]": "array", `"a"`: "string", "1": "number", "-1": "number", "true": "boolean", "false": "boolean",
		"null": "null", "": "nothing", " ": "nothing", "}": "nothing", "xyz": "nothing", "\v1": "nothing",
	} {
		if got := TypeOf([]byte(raw)); got != want {
			t.Errorf("TypeOf(%q) = %q, want %q", raw, got, want)
		}
	}
}

// FuzzMembers compares the walk with what encoding/json makes of the same object.
func FuzzMembers(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := members(b)
		if (err == nil) != (Valid(b) == nil && TypeOf(b) == "object") && utf8.Valid(b) {
			t.Fatalf("%q: the walk says %v, Valid says %v", b, err, Valid(b))
		}
		if err != nil || !utf8.Valid(b) {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		last := map[string]string{}
		for _, m := range got {
			last[m.Key] = m.Value
		}
		if len(last) != len(want) {
			t.Fatalf("%q: names %q, want %q", b, last, want)
		}
		for k, v := range want {
			if last[k] != string(bytes.Trim(v, " \t\r\n")) {
				t.Fatalf("%q: %q is %q, want %q", b, k, last[k], v)
			}
		}
		if _, dup := Duplicate(b); dup != (len(got) != len(last)) {
			t.Fatalf("%q: Duplicate = %v, %d members have %d names", b, dup, len(got), len(last))
		}
	})
}

func FuzzElements(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
		f.Add([]byte("[" + s + "," + s + "]"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := elements(b)
		if !utf8.Valid(b) {
			return
		}
		if (err == nil) != (Valid(b) == nil && TypeOf(b) == "array") {
			t.Fatalf("%q: the walk says %v, Valid says %v", b, err, Valid(b))
		}
		if err != nil {
			return
		}
		var want []json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil || len(want) != len(got) {
			t.Fatalf("%q: %v, %d elements, want %d", b, err, len(got), len(want))
		}
		for i := range want {
			if got[i] != strings.Trim(string(want[i]), " \t\r\n") {
				t.Fatalf("%q: element %d is %q, want %q", b, i, got[i], want[i])
			}
		}
	})
}
