package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestValidAgreesWithEncodingJSON(t *testing.T) {
	for _, s := range seeds {
		want := json.Valid([]byte(s)) && utf8.ValidString(s)
		if err := Valid([]byte(s)); (err == nil) != want {
			t.Errorf("Valid(%q) = %v, want valid %v", s, err, want)
		}
	}
}

func TestValidBounds(t *testing.T) {
	deep := func(open, end string, n int) []byte {
		return []byte(strings.Repeat(open, n) + strings.Repeat(end, n))
	}
	for _, tt := range []struct {
		name string
		in   []byte
		ok   bool
	}{
		{"deepest array", deep("[", "]", MaxDepth), true},
		{"array too deep", deep("[", "]", MaxDepth+1), false},
		{"deepest object", append(deep(`{"":`, "", MaxDepth-1), "{}"+strings.Repeat("}", MaxDepth-1)...), true},
		{"object too deep", append(deep(`{"":`, "", MaxDepth), "{}"+strings.Repeat("}", MaxDepth)...), false},
		{"longest number", bytes.Repeat([]byte("9"), 1000), true},
		{"number too long", bytes.Repeat([]byte("9"), 1001), false},
		{"only opening brackets", bytes.Repeat([]byte("["), 1<<20), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := Valid(tt.in); (err == nil) != tt.ok {
				t.Errorf("got %v, want valid %v", err, tt.ok)
			}
		})
	}
}

func TestSyntaxErrorOffset(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int
	}{
		{``, 0},
		{`{"a":1,}`, 7},
		{`{"a" 1}`, 5},
		{`{} x`, 3},
		{"\"ab\xff\"", 3},
		{"[\"0123456789\x01\"]", 12},
		{`["a\q"]`, 3},
		{`[1.x]`, 3},
		{`"abc`, 0},
	} {
		var syn *SyntaxError
		if err := Valid([]byte(tt.in)); !errors.As(err, &syn) || syn.Offset != tt.want {
			t.Errorf("Valid(%q) = %v, want offset %d", tt.in, err, tt.want)
		}
	}
}

// TestSkipPlain puts every byte at every place of a word and behind it.
func TestSkipPlain(t *testing.T) {
	for at := range 20 {
		for c := range 256 {
			b := []byte(strings.Repeat("x", 24))
			b[at] = byte(c)
			want := len(b)
			if c < 0x20 || c == '"' || c == '\\' {
				want = at
			}
			if got := skipPlain(b, 0); got != want {
				t.Fatalf("byte %#x at %d: got %d, want %d", c, at, got, want)
			}
			if got := skipPlain(b, at+1); got != len(b) {
				t.Fatalf("byte %#x at %d: begun behind it, got %d", c, at, got)
			}
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Valid(b)
		want := json.Valid(b) && utf8.Valid(b)
		if err == nil && !want {
			t.Fatalf("%q: accepted, encoding/json refuses it", b)
		}
		if err != nil && want && len(b) < 1000 { // shorter than every bound of ours
			t.Fatalf("%q: %v, encoding/json accepts it", b, err)
		}
		var syn *SyntaxError
		if err != nil && (!errors.As(err, &syn) || syn.Offset < 0 || syn.Offset > len(b)) {
			t.Fatalf("%q: %v", b, err)
		}
	})
}
