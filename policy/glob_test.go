package policy

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/usher-mcp/usher/internal/lookalike"
	"github.com/usher-mcp/usher/internal/pattern"
)

// FuzzGlob: what a pattern allows it also denies.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"a*b?", "axxbc"}, {"[a-z]*", "q"}, {"[^a]", "b"}, {`\[x`, "[x"}, {"**", ""}, {"[a-b-c]", "-"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		if pattern.Check(text) != nil || strings.Contains(name, "/") || !utf8.ValidString(text) || !utf8.ValidString(name) {
			return
		}
		if g := compileGlob(text); g.matches(name) && !g.catches(name, fold(name)) {
			t.Fatalf("%q allows %q and does not deny it", text, name)
		}
	})
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
