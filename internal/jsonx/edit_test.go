package jsonx

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestApply(t *testing.T) {
	for _, tt := range []struct {
		name, obj string
		edits     []Edit
		want      string
	}{
		{"replace keeps place and spaces", `{ "a" : 1 , "b":2 }`, []Edit{{"a", []byte(`[9]`)}}, `{"a" : [9],"b":2}`},
		{"append", `{"a":1}`, []Edit{{"b", []byte(`"x"`)}}, `{"a":1,"b":"x"}`},
		{"append to empty", ` { } `, []Edit{{"b", []byte(`2`)}}, `{"b":2}`},
		{"append keeps the order of edits", `{}`, []Edit{{"b", []byte(`2`)}, {"a", []byte(`1`)}}, `{"b":2,"a":1}`},
		{"a name that needs escapes", `{}`, []Edit{{"a\"\n", []byte(`2`)}}, `{"a\"\n":2}`},
		{"a name that has escapes", `{"\u0061":1}`, []Edit{{"a", []byte(`2`)}}, `{"\u0061":2}`},
		{"null", `null`, []Edit{{"b", []byte(`2`)}}, `{"b":2}`},
		{"array", `[1]`, []Edit{{"b", []byte(`2`)}}, `{"b":2}`},
		{"nothing", ``, []Edit{{"b", []byte(`2`)}}, `{"b":2}`},
		{"delete from nothing", ``, []Edit{{"b", nil}}, `{}`},
		{"delete", `{"a":1,"b":2,"c":3}`, []Edit{{"b", nil}}, `{"a":1,"c":3}`},
		{"delete the first", `{"a":1,"b":2}`, []Edit{{"a", nil}}, `{"b":2}`},
		{"delete the only one", `{"a":1}`, []Edit{{"a", nil}}, `{}`},
		{"delete what is not there", `{ "a":1 }`, []Edit{{"b", nil}}, `{ "a":1 }`},
		{"no edit", `{ "a":1 }`, nil, `{ "a":1 }`},
		{"a duplicate goes too", `{"a":1,"b":0,"a":2}`, []Edit{{"a", []byte(`3`)}}, `{"a":3,"b":0}`},
		{"all duplicates are deleted", `{"a":1,"b":0,"a":2}`, []Edit{{"a", nil}}, `{"b":0}`},
		{"other duplicates stay", `{"a":1,"b":0,"a":2}`, []Edit{{"b", nil}}, `{"a":1,"a":2}`},
		{"several", `{"a":1,"b":2}`, []Edit{{"b", nil}, {"a", []byte(`0`)}, {"z", []byte(`7`)}}, `{"a":0,"z":7}`},
		{"two edits of a present key", `{"a":1}`, []Edit{{"a", []byte(`2`)}, {"a", []byte(`3`)}}, `{"a":3}`},
		{"two edits of a new key", `{}`, []Edit{{"a", []byte(`2`)}, {"a", []byte(`3`)}}, `{"a":3}`},
		{"set, then delete", `{"a":1}`, []Edit{{"a", []byte(`2`)}, {"a", nil}}, `{}`},
		{"set new, then delete", `{"b":1}`, []Edit{{"a", []byte(`2`)}, {"a", nil}}, `{"b":1}`},
		{"delete, then set", `{"a":1}`, []Edit{{"a", nil}, {"a", []byte(`2`)}}, `{"a":2}`},
		{"big integers stay", `{"n":9007199254740993}`, []Edit{{"z", []byte(`1`)}}, `{"n":9007199254740993,"z":1}`},
		{"cut off", `{"a":1,"b":`, []Edit{{"a", []byte(`2`)}}, `{"a":1,"b":`},
		{"text behind", `{"a":1}x`, []Edit{{"a", []byte(`2`)}}, `{"a":1}x`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj := []byte(tt.obj)
			if diff := cmp.Diff(tt.want, string(Apply(obj, tt.edits...))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if string(obj) != tt.obj {
				t.Errorf("the input became %s", obj)
			}
		})
	}
}

func TestApplySharesNothing(t *testing.T) {
	obj := []byte(`{"a":1,"b":2}`)
	out := Set(obj, "a", []byte("9"))
	for i := range obj {
		obj[i] = 'x'
	}
	if string(out) != `{"a":9,"b":2}` {
		t.Errorf("the result changed with the input: %s", out)
	}
}

// FuzzApply edits one key of any object and looks whether that and nothing else
// happened.
func FuzzApply(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), "k", []byte(`1`))
		f.Add([]byte(s), "a", []byte(`{"x":[]}`))
	}
	f.Fuzz(func(t *testing.T, obj []byte, key string, value []byte) {
		key = string(unquote(Quote(key))) // as it reads when it has been written
		if Valid(value) != nil {
			value = []byte(`1`)
		}
		out := Set(obj, key, value)
		before, err := members(obj)
		if err != nil && TypeOf(obj) == "object" {
			if string(out) != string(obj) {
				t.Fatalf("%q is broken and became %q", obj, out)
			}
			return
		}
		after, err := members(out)
		if err != nil {
			t.Fatalf("%q: set %q made %q: %v", obj, key, out, err)
		}
		var want, rest []member2
		put := false
		for _, m := range before {
			switch {
			case m.Key != key:
				want, rest = append(want, m), append(rest, m)
			case !put:
				want, put = append(want, member2{key, string(trim(value))}), true
			}
		}
		if !put {
			want = append(want, member2{key, string(trim(value))})
		}
		if diff := cmp.Diff(want, after); diff != "" {
			t.Fatalf("%q: set %q (-want +got)\n%s", obj, key, diff)
		}
		if after, err = members(Delete(out, key)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rest, after); diff != "" {
			t.Fatalf("%q: delete %q (-want +got)\n%s", out, key, diff)
		}
	})
}

func trim(b []byte) []byte {
	start := skipSpace(b, 0)
	end, _ := skipValue(b, start, 0)
	return b[start:end]
}

// FuzzApplyMany makes up to some hundred edits at once, and compares with making
// them one after the other.
func FuzzApplyMany(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":2}`), "a=1,b,c=3")
	f.Add([]byte(`{"a":1,"a":2,"k7":0}`), "k0=0,k1=1,k2=2,k3=3,k4=4,k5=5,k6=6,k7,k8=8,k9=9,k0=1,a")
	f.Add([]byte(`{"a":1`), "a,b,c,d,e,f,g,h,i,j")
	f.Fuzz(func(t *testing.T, obj []byte, text string) {
		var edits []Edit
		for _, one := range strings.Split(text, ",") {
			key, value, set := strings.Cut(one, "=")
			e := Edit{Key: string(unquote(Quote(key)))}
			if set {
				e.Value = Quote(value)
			}
			edits = append(edits, e)
		}
		got, err := members(Apply(obj, edits...))
		var want []member2
		if before, broken := members(obj); broken == nil || TypeOf(obj) != "object" {
			want = applied(before, edits)
		} else {
			want = before
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q, %q: %v (-one by one +Apply)\n%s", obj, text, err, diff)
		}
	})
}

// applied is the slow and simple form of Apply.
func applied(obj []member2, edits []Edit) []member2 {
	last := map[string]string{}
	var order []string
	for _, e := range edits {
		last[e.Key] = string(e.Value)
		order = slices.DeleteFunc(order, func(k string) bool { return k == e.Key })
		order = append(order, e.Key)
	}
	var out []member2
	done := map[string]bool{}
	for _, m := range obj {
		value, edited := last[m.Key]
		switch {
		case !edited:
			out = append(out, m)
		case value != "" && !done[m.Key]:
			out = append(out, member2{m.Key, value})
		}
		done[m.Key] = true
	}
	for _, key := range order {
		if !done[key] && last[key] != "" {
			out = append(out, member2{key, last[key]})
		}
	}
	return out
}
