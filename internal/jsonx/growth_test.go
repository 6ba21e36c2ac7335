package jsonx

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// object makes an object of n members and an edit for each.
func object(n int) (obj []byte, edits []Edit) {
	obj = []byte("{")
	for i := range n {
		if i > 0 {
			obj = append(obj, ',')
		}
		obj = fmt.Appendf(obj, `"member-%d":%d`, i, i)
		edits = append(edits, Edit{Key: fmt.Sprintf("member-%d", i), Value: []byte(`"x"`)})
	}
	return append(obj, '}'), edits
}

// TestApplyIsLinear: a definition with many members to change once took minutes.
func TestApplyIsLinear(t *testing.T) {
	need.Linear(t, 2000, func(n int) func() {
		obj, edits := object(n)
		return func() { Apply(obj, edits...) }
	})
	need.Linear(t, 2000, func(n int) func() {
		_, edits := object(n)
		return func() { Apply(nil, edits...) } // all of them are new members
	})
}

func TestReadersAreLinear(t *testing.T) {
	for name, make := range map[string]func(n int) []byte{
		"members": func(n int) []byte { obj, _ := object(n); return obj },
		"escapes": func(n int) []byte {
			return append(append([]byte(`{"a":"`), bytes.Repeat([]byte(`\u0061`), n)...), `"}`...)
		},
		"quotes": func(n int) []byte {
			return append(append([]byte(`{"a":"`), bytes.Repeat([]byte(`\"`), n)...), `"}`...)
		},
		"backslashes far apart": func(n int) []byte {
			return append(append([]byte(`{"a":"`), bytes.Repeat(append(bytes.Repeat([]byte("x"), 300), `\\`...), n/50)...), `"}`...)
		},
		"spaces": func(n int) []byte { return append(append([]byte(`{"a":1`), bytes.Repeat([]byte(" "), 10*n)...), '}') },
	} {
		t.Run(name, func(t *testing.T) {
			need.Linear(t, 5000, func(n int) func() {
				raw := make(n)
				return func() {
					Duplicate(raw)
					Get(raw, "b")
					Set(raw, "b", raw)
					if _, err := Canonical(raw); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
