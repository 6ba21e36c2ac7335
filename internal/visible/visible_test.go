package visible

import "testing"

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"plain": `"plain"`, "a\x1b[2K": `"a\x1b[2K"`, "a\u202eb": `"a\u{202e}b"`, `q"\`: `"q\"\\"`, "bad\xff": `"bad\xff"`, "ünï": `"ünï"`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
	if got := Text(`say "hi"` + "\u200b"); got != `say "hi"\u{200b}` {
		t.Error(got)
	}
	if !Suspicious("a\u200b") || Suspicious("ab") {
		t.Error("a hidden character is not noticed, or a plain one is")
	}
}
