package jsonx

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestDuplicate(t *testing.T) {
	many := func(n int, more string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		return "{" + b.String() + more + "}"
	}
	for _, tt := range []struct {
		name, obj, want string
		dup             bool
	}{
		{"none", `{"a":1,"b":2}`, "", false},
		{"empty", `{}`, "", false},
		{"no object", `[1,1]`, "", false},
		{"plain", `{"a":1,"b":2,"a":3}`, "a", true},
		{"escaped", `{"a":1,"\u0061":3}`, "a", true},
		{"case is no duplicate", `{"a":1,"A":3}`, "", false},
		{"nested is not looked at", `{"a":{"b":1,"b":2}}`, "", false},
		{"empty name", `{"":1,"":2}`, "", true},
		{"31 names", many(30, `"x":1`), "", false},
		{"32 names, then the first", many(32, `"k0":1`), "k0", true},
		{"200 names", many(200, `"x":1`), "", false},
		{"200 names, then an early one", many(200, `"k3":1`), "k3", true},
		{"200 names, then a late one", many(200, `"k150":1`), "k150", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, dup := Duplicate([]byte(tt.obj)); got != tt.want || dup != tt.dup {
				t.Errorf("got %q, %v, want %q, %v", got, dup, tt.want, tt.dup)
			}
		})
	}
}

func TestLookalike(t *testing.T) {
	known := []string{"id", "params", "taskId", "_meta"}
	for key, want := range map[string]string{
		"id": "", "params": "", "taskId": "", // itself
		"ID": "id", "Id": "id", "iD": "id", "PARAMS": "params", "taskid": "taskId", "_Meta": "_meta",
		"param\u017f": "params", "ta\u017f\u212aId": "taskId", "\u0130d": "id", "\u0131D": "id",
		"id\x00": "id", "id\x00x": "id", "ID\x00": "id",
		"": "", "\x00": "", "i": "", "idd": "", "meta": "", "param": "", "paramſſ": "", "ïd": "", "id ": "", "\xffd": "",
	} {
		if got := Lookalike([]byte(key), known); got != want {
			t.Errorf("Lookalike(%q) = %q, want %q", key, got, want)
		}
	}
}

// FuzzLookalike holds the rule against the reader it protects from: whatever
// encoding/json puts into a field, by a name that is not the field's, is one.
func FuzzLookalike(f *testing.F) {
	for _, s := range []string{"id", "ID", "param\u017f", "tas\u212aId", "\u0130d", "name\x00", "", "\xff"} {
		f.Add(s)
	}
	known := []string{"id", "params", "taskId", "_meta"}
	f.Fuzz(func(t *testing.T, key string) {
		var v struct {
			ID     int `json:"id"`
			Params int `json:"params"`
			TaskID int `json:"taskId"`
			Meta   int `json:"_meta"`
		}
		if err := json.Unmarshal(fmt.Appendf(nil, `{%s:1}`, Quote(key)), &v); err != nil {
			t.Fatal(err)
		}
		took := v.ID+v.Params+v.TaskID+v.Meta > 0
		got := Lookalike([]byte(key), known)
		itself := false
		for _, k := range known {
			itself = itself || k == key
		}
		if took && !itself && got == "" || itself && got != "" {
			t.Fatalf("%q: encoding/json takes it %v, Lookalike says %q", key, took, got)
		}
	})
}
