package pattern

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true},
		{"*", "any/thing", true},
		{"", "", true},
		{"", "a", false},
		{"delete_*", "delete_repo", true},
		{"delete_*", "delete_", true},
		{"delete_*", "xdelete_", false},
		{"delete_*", "delete_a/b", true}, // a slash is no way past a rule
		{"*_repo", "delete_repo", true},
		{"*a*b*", "xxaxxbxx", true},
		{"*a*b*", "xxbxxaxx", false},
		{"?", "ż", true},
		{"?", "", false},
		{"??", "a", false},
		{"[a-c]x", "bx", true},
		{"[^a-c]x", "bx", false},
		{"[^a-c]x", "dx", true},
		{"[ż]", "ż", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a\`, `a\`, true},
		{`[\]]`, "]", true},
		{"[a-]", "-", true},
		{"[", "[", true},
		{"[^", "[^", true},
		{"[a", "[a", true},
		{"[a-", "[a-", true},
		{"Delete", "delete", false},
	} {
		p := Compile(tt.pattern)
		if got := Match(tt.pattern, tt.name); got != p.Match(tt.name) {
			t.Errorf("Match(%q, %q) = %v, compiled %v", tt.pattern, tt.name, got, !got)
		}
		if got := p.Match(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
}

func TestMatchIsNotSlow(t *testing.T) {
	p := Compile(strings.Repeat("*a", 50) + "b")
	if p.Match(strings.Repeat("a", 128)) {
		t.Error("matches")
	}
}

// FuzzMatch has path.Match as its judge, for names without a slash and patterns
// that path.Match accepts.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"a*b?", "axxbc"}, {"[a-z]*", "q"}, {"[^a]", "b"}, {`\[x`, "[x"}, {"**", ""}, {"[a-b-c]", "-"}, {`[\-x]`, "-"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		want, err := path.Match(pattern, name)
		if err != nil || strings.Contains(name, "/") || !utf8.ValidString(pattern) || !utf8.ValidString(name) {
			return
		}
		if !validPattern(pattern) {
			return
		}
		p := Compile(pattern)
		if got := p.Match(name); got != want {
			t.Fatalf("%q matches %q: %v, path.Match says %v", pattern, name, got, want)
		}
	})
}

// validPattern leaves out what path.Match only refuses once it gets that far.
func validPattern(pattern string) bool {
	for i := range len(pattern) {
		if _, err := path.Match(pattern[i:], "x"); err != nil {
			return false
		}
	}
	_, err := path.Match(pattern, "")
	return err == nil
}

func TestCheck(t *testing.T) {
	for p, want := range map[string]bool{"a*": true, "[ab]": true, "": false, "[": false, "[a": false, `a\\`: true, `a\`: false} {
		if err := Check(p); (err == nil) != want {
			t.Errorf("Check(%q) = %v", p, err)
		}
	}
}

// A scope of a token is matched with every call.
func TestMatchDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Match("git[hl]*/get_*", "github/get_issue") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Match("github/get_*", "github/get_issue")
	}
}
