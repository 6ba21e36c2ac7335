package policy

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/lookalike"
)

func TestGlob(t *testing.T) {
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
		g := compileGlob(tt.pattern)
		if got := g.matches(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
}

func TestGlobIsNotSlow(t *testing.T) {
	g := compileGlob(strings.Repeat("*a", 50) + "b")
	if g.matches(strings.Repeat("a", maxToolName)) {
		t.Error("matches")
	}
}

// FuzzGlob has path.Match as its judge, for names without a slash and patterns
// that path.Match accepts.
func FuzzGlob(f *testing.F) {
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
		g := compileGlob(pattern)
		if got := g.matches(name); got != want {
			t.Fatalf("%q matches %q: %v, path.Match says %v", pattern, name, got, want)
		}
		if want && !g.catches(name, fold(name)) {
			t.Fatalf("%q allows %q and does not deny it", pattern, name)
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

func TestFold(t *testing.T) {
	for _, same := range [][]string{
		{"delete_repo", "Delete_Repo", "DELETE-REPO", "delete.repo", "delete repo", "delete/repo", "delete:repo", "delete_repo.", " delete_repo "},
		{"delete_repo", "dеlete_repo", "delеte_rеpo", "dеlеtе_rеро"},                // Cyrillic
		{"delete_repo", "ｄｅｌｅｔｅ＿ｒｅｐｏ", "𝐝𝐞𝐥𝐞𝐭𝐞_𝐫𝐞𝐩𝐨", "𝚍𝚎𝚕𝚎𝚝𝚎_𝚛𝚎𝚙𝚘", "ⓓⓔⓛⓔⓣⓔ_ⓡⓔⓟⓞ"}, // compatibility forms
		{"delete_repo", "délete_repo", "de\u0301lete_repo", "dẹlete_repo"},          // diacritics
		{"delete_repo", "delete\u200b_repo", "delete_\u00adrepo", "delete_\u2060repo", "\ufeffdelete_repo", "delete_re\U000E0061po", "delete_repo\u3164"},
		{"delete_repo", "delete%5frepo", "delete%5Frepo", `delete\_repo`, `del%65te_repo`},
		{"delete_repo", "delete‿repo", "delete–repo", "delete\u00a0repo", "delete\x00_repo"},
		{"file", "ﬁle"},
		{"kill", "Kill", "\u212aill"},
		{"list", "liſt"},
		{"NO", "ΝΟ"},
		{"HTTP", "НТТР"},
	} {
		for _, s := range same[1:] {
			if fold(s) != fold(same[0]) {
				t.Errorf("fold(%q) = %q, fold(%q) = %q", s, fold(s), same[0], fold(same[0]))
			}
		}
	}
	for _, pair := range [][2]string{{"delete", "list"}, {"get1", "get2"}, {"日本", "中国"}, {"a", "b"}} {
		if fold(pair[0]) == fold(pair[1]) {
			t.Errorf("%q and %q fold alike", pair[0], pair[1])
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add("delete_repo")
	f.Add("%zz%4\\\xff\u200b")
	f.Fuzz(func(t *testing.T, s string) {
		once := fold(s)
		if strings.ContainsFunc(once, lookalike.Hidden) {
			t.Fatalf("fold(%q) = %q hides something", s, once)
		}
	})
}
