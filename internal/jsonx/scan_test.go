package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
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
			if got := skipPlain(b, 0, len(b)); got != want {
				t.Fatalf("byte %#x at %d: got %d, want %d", c, at, got, want)
			}
			if got := skipPlain(b, at+1, len(b)); got != len(b) {
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

// Long strings go another way than short ones; both must find the same end.
func TestSkipStringLong(t *testing.T) {
	t.Parallel()
	simple := func(b []byte) (int, bool) { // the offset behind the string, or of what is wrong
		for j := 1; j < len(b); {
			switch c := b[j]; {
			case c == '"':
				return j + 1, true
			case c < 0x20:
				return j, false
			case c == '\\':
				n, err := escapeLen(b, j)
				if err != nil {
					return j, false
				}
				j += n
			default:
				j++
			}
		}
		return 0, false
	}
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{`\"`, `\\`, `\u00e9`, `\n`, `\x`, "\n", "\x1f", `"`, "é", "\x7f", "\x80", " "}
	for range 20_000 {
		b := []byte{'"'}
		for range rng.IntN(6) {
			b = append(b, bytes.Repeat([]byte("a"), rng.IntN(150))...)
			b = append(b, pieces[rng.IntN(len(pieces))]...)
		}
		if rng.IntN(8) > 0 {
			b = append(b, `" tail`...)
		}
		want, ok := simple(b)
		if got, err := skipString(b, 0); got != want || (err == nil) != ok {
			t.Fatalf("%q: %d, %v; want %d, %t", b, got, err, want, ok)
		}
	}
}

func BenchmarkSkipString(b *testing.B) {
	for name, text := range map[string]string{
		"short": "hello", "64 KB": strings.Repeat("x", 64<<10), "64 KB of lines": strings.Repeat(strings.Repeat("x", 70)+`\n`, 900),
		"64 KB of quotes": strings.Repeat(`\"xx`, 16<<10),
	} {
		value := []byte(`"` + text + `"`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				if _, err := skipString(value, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
