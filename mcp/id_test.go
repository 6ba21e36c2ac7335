package mcp

import (
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
)

func TestID(t *testing.T) {
	if IntID(7).JSON() != "7" || IntID(-7).JSON() != "-7" || TextID("a\"b").JSON() != `"a\"b"` {
		t.Error("an id of ours has the wrong text")
	}
	if (ID{}).Present() || (ID{}).Null() || (ID{}).JSON() != "null" || (ID{}).String() != "null" {
		t.Error("the zero id is something")
	}
	if IntID(1) == TextID("1") {
		t.Error(`1 and "1" are equal`)
	}
}

func TestRawID(t *testing.T) {
	for _, tt := range []struct {
		raw, want string
		ok        bool
		n         int64
		isInt     bool
	}{
		{`1`, `1`, true, 1, true},
		{` 1 `, `1`, true, 1, true},
		{`-5`, `-5`, true, -5, true},
		{`9223372036854775807`, `9223372036854775807`, true, 9223372036854775807, true},
		{`9223372036854775808`, `9223372036854775808`, true, 0, false},
		{`-0`, `-0`, true, 0, false},
		{`1.0`, `1.0`, true, 0, false},
		{`1e0`, `1e0`, true, 0, false},
		{`"1"`, `"1"`, true, 0, false},
		{`null`, `null`, true, 0, false},
		{`true`, ``, false, 0, false},
		{`{}`, ``, false, 0, false},
		{`xyz`, ``, false, 0, false},
		{`01`, ``, false, 0, false},
		{`1,2`, ``, false, 0, false},
		{`"a`, ``, false, 0, false},
		{``, ``, false, 0, false},
	} {
		id, ok := RawID([]byte(tt.raw))
		if ok != tt.ok || id.text != tt.want {
			t.Errorf("RawID(%q) = %q, %v, want %q, %v", tt.raw, id.text, ok, tt.want, tt.ok)
		}
		if n, isInt := id.Int(); n != tt.n || isInt != tt.isInt {
			t.Errorf("RawID(%q).Int() = %d, %v, want %d, %v", tt.raw, n, isInt, tt.n, tt.isInt)
		}
	}
}

func FuzzRawID(f *testing.F) {
	for _, s := range []string{`1`, `"a"`, `null`, `-0`, `1e9`, `{}`, ``, ` 7 `, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, ok := RawID(raw)
		if ok != id.Present() {
			t.Fatalf("%q: %v, %v", raw, id, ok)
		}
		if err := jsonx.Valid([]byte(id.JSON())); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if n, isInt := id.Int(); isInt && IntID(n) != id {
			t.Fatalf("%q: %v is not %v", raw, IntID(n), id)
		}
	})
}
