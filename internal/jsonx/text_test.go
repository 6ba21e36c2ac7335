package jsonx

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, tt := range []struct {
		raw, want  string
		ok, strict bool
	}{
		{`""`, "", true, true},
		{`"a"`, "a", true, true},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t", true, true},
		{`"\u00e9\u00E9é"`, "ééé", true, true},
		{`"\u0000"`, "\x00", true, true},
		{`"\ud83d\ude00!"`, "😀!", true, true},
		{`"\ud83d"`, "\ufffd", true, false},
		{`"\ud83d!"`, "\ufffd!", true, false},
		{`"\ud83d\n"`, "\ufffd\n", true, false},
		{`"\ud83d\u0041"`, "\ufffdA", true, false},
		{`"\ude00\ud83d"`, "\ufffd\ufffd", true, false},
		{`"\ud83d\ud83d\ude00"`, "\ufffd😀", true, false},
		{`"\ufffd"`, "\ufffd", true, true}, // the real one is no half
		{`"a`, "", false, false},
		{`"a"b"`, "", false, false},
		{`"a" `, "", false, false},
		{`a`, "", false, false},
		{`"`, "", false, false},
		{`1`, "", false, false},
		{``, "", false, false},
	} {
		if got, ok := Text([]byte(tt.raw)); got != tt.want || ok != tt.ok {
			t.Errorf("Text(%s) = %q, %v, want %q, %v", tt.raw, got, ok, tt.want, tt.ok)
		}
		want := tt.want
		if !tt.strict {
			want = ""
		}
		if got, ok := StrictText([]byte(tt.raw)); got != want || ok != tt.strict {
			t.Errorf("StrictText(%s) = %q, %v, want %q, %v", tt.raw, got, ok, want, tt.strict)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":                   `""`,
		"a\"b\\c":            `"a\"b\\c"`,
		"\n\r\t\x00\x1f\x7f": `"\n\r\t\u0000\u001f` + "\x7f\"",
		"<é\u2028😀>":         "\"<é\u2028😀>\"",
		"a\xffb\xc3":         "\"a\ufffdb\ufffd\"",
	} {
		if got := string(Quote(in)); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Add("a\"\\\n\x00é\xff\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		// Out and back.
		q := Quote(s)
		if err := Valid(q); err != nil {
			t.Fatalf("Quote(%q) = %s: %v", s, q, err)
		}
		want := strings.Map(func(r rune) rune { return r }, s) // U+FFFD for each bad byte
		if got, ok := StrictText(q); !ok || got != want {
			t.Fatalf("StrictText(Quote(%q)) = %q, %v, want %q", s, got, ok, want)
		}
		if c, err := Canonical(q); err != nil || c[0] != '"' {
			t.Fatalf("Canonical(%s) = %s, %v", q, c, err)
		}
		// The input as JSON text.
		raw := []byte(s)
		got, ok := Text(raw)
		strict, strictOK := StrictText(raw)
		if strictOK && (!ok || strict != got) {
			t.Fatalf("%q: StrictText %q, Text %q %v", s, strict, got, ok)
		}
		if !utf8.ValidString(s) {
			return
		}
		var std string
		stdOK := json.Unmarshal(raw, &std) == nil && s[0] == '"' && s[len(s)-1] == '"'
		if ok != stdOK || got != std && ok {
			t.Fatalf("Text(%q) = %q, %v, encoding/json says %q, %v", s, got, ok, std, stdOK)
		}
	})
}
