package jsonx

import (
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
