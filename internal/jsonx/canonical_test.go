package jsonx

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"b":1,"a":[ 1 , 2 ]}`, `{"a":[1,2],"b":1}`},
		{" { \"a\" : { \"c\":1, \"b\":{} } }\n", `{"a":{"b":{},"c":1}}`},
		{`"\u00e9\/"`, `"é/"`},
		{`[3,1,2]`, `[3,1,2]`},
		{`9007199254740993`, `9007199254740993`},
		{`123456789012345678901234567890`, `123456789012345678901234567890`},
		{`9007199254740993.0`, `9007199254740993.0`},
		{`1e400`, `1e400`},
		{`0.1000000000000000055`, `0.1000000000000000055`},
		{`"\ud83d\ude00"`, `"😀"`},
	} {
		got, err := Canonical([]byte(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("Canonical(%s) = %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, in := range []string{
		``, `{`, `{"a":1,}`, `{} {}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"x":[{"a":1,"a":1}]}`, `"\ud800"`, "\"\xff\"",
	} {
		if got, err := Canonical([]byte(in)); err == nil {
			t.Errorf("Canonical(%q) = %s", in, got)
		}
		if got, err := Hash([]byte(in)); err == nil || got != "" {
			t.Errorf("Hash(%q) = %s, %v", in, got, err)
		}
	}
}

func TestHashTellsNumbersApart(t *testing.T) {
	seen := map[string]string{}
	for _, n := range []string{"9007199254740992", "9007199254740993", "9007199254740993.0", "1e400", "1e401", "1.7976931348623157e308", "0", "1"} {
		h, err := Hash([]byte(`{"n":` + n + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have one hash", n, other)
		}
		seen[h] = n
	}
}

// FuzzCanonical checks that the canonical form is a fixed point, keeps the meaning,
// and is not changed by spaces.
func FuzzCanonical(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := string(b)
		c, err := Canonical(b)
		if string(b) != before {
			t.Fatalf("the input %q became %q", before, b)
		}
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("%q: accepted, encoding/json refuses it", b)
		}
		again, err := Canonical(c)
		if err != nil || !bytes.Equal(c, again) {
			t.Fatalf("%q: %q becomes %q, %v", b, c, again, err)
		}
		if diff := cmp.Diff(decode(t, b), decode(t, c)); diff != "" {
			t.Fatalf("%q and %q mean different things\n%s", b, c, diff)
		}
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, b, "\t", "  "); err != nil {
			t.Fatal(err)
		}
		h1, _ := Hash(b)
		if h2, err := Hash(spaced.Bytes()); err != nil || h1 != h2 {
			t.Fatalf("%q: spaces change the hash", b)
		}
	})
}

func decode(t *testing.T, b []byte) any {
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
