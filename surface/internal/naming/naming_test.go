package naming

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestShownNames(t *testing.T) {
	long := strings.Repeat("x", 120)
	for _, tt := range []struct{ name, separator, server, account, tool, want string }{
		{"plain", "__", "github", "", "search_issues", "github__search_issues"},
		{"tool holds the separator", "__", "a", "", "b__c", "a__b__c"},
		{"server holds the separator", "__", "a__b", "", "c", "a__b__c-"},
		{"separator across the seam", "__", "a_", "", "b", "a___b-"},
		{"tool begins like the separator", "__", "a", "", "_b", "a___b"},
		{"account", "__", "linear", "work", "list", "linear--work__list"},
		{"server like an account", "__", "linear--work", "", "list", "linear--work__list-"},
		{"dot", ".", "a", "", "b", "a.b"},
		{"server with a dot", ".", "a.b", "", "c", "a.b.c-"},
		{"foreign letters", "__", "łódź", "", "płać", "__d___p_a_-"},
		{"blank in the tool", "__", "a", "", "b c", "a__b_c-"},
		{"empty tool", "__", "a", "", "", "a__-"},
		{"too long", "__", long, "", "yyyyyyyyyy", long[:111] + "-"},
		{"looks marked", "__", "a", "", "b-0123456789abcdef", "a__b-0123456789abcdef-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Scheme{tt.separator}.Shown(tt.server, tt.account, tt.tool)
			if marked(got) && strings.HasSuffix(tt.want, "-") {
				got = got[:len(got)-sumLength]
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

var allowedName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// TestNamesAreInjective draws names from few letters, so that many meet at the
// seams, and wants two different things never to share a name.
func TestNamesAreInjective(t *testing.T) {
	part := rapid.StringMatching(`[a_.\-]{1,6}`)
	tool := rapid.OneOf(rapid.StringMatching(`[a_.\-]{0,8}`), rapid.StringMatching(`[ab_\- é]{0,140}`), rapid.StringMatching(`[ab]{1,3}-[0-9a-f]{16}`))
	type thing struct{ server, account, tool string }
	rapid.Check(t, func(t *rapid.T) {
		n := Scheme{rapid.SampledFrom([]string{"__", "_", "--", "-", ".", "_-_", "...."}).Draw(t, "separator")}
		seen := map[string]thing{}
		for range 40 {
			x := thing{server: part.Draw(t, "server"), tool: tool.Draw(t, "tool")}
			if rapid.Bool().Draw(t, "labelled") {
				x.account = part.Draw(t, "account")
			}
			name := n.Shown(x.server, x.account, x.tool)
			if !allowedName.MatchString(name) {
				t.Fatalf("%+v is shown as %q", x, name)
			}
			if name == "login" {
				t.Fatalf("%+v takes the name of the login tool", x)
			}
			if other, ok := seen[name]; ok && other != x {
				t.Fatalf("%+v and %+v are both shown as %q", x, other, name)
			}
			seen[name] = x
		}
	})
}

func TestTemplates(t *testing.T) {
	for _, tt := range []struct {
		template, uri string
		want          bool
	}{
		{"file:///{path}", "file:///a/b", true},
		{"file:///{path}", "http://a", false},
		{"a://{x}/b/{y}", "a://1/b/2", true},
		{"a://{x}/b/{y}", "a://1/c/2", false},
		{"a://x", "a://x", true},
		{"a://x", "a://xy", false},
		{"a://{x", "a://anything", true},
		{"{+all}", "anything://", true},
		{"db://{t}/schema", "db://users/schema", true},
		{"db://{t}/schema", "db://users/rows", false},
	} {
		if got := ParseTemplate(tt.template).Matches(tt.uri); got != tt.want {
			t.Errorf("%s matches %s: %v", tt.template, tt.uri, got)
		}
	}
}

func TestAddressesWithServer(t *testing.T) {
	for _, l := range []string{"files", "linear@work", "a b", "ü/x", "50%"} {
		for _, uri := range []string{"file:///a", "x:", "", "usher://files/y", "a://{b}"} {
			got, rest, ok := SplitServer(WithServer(l, uri))
			if !ok || got != l || rest != uri {
				t.Errorf("%q %q became %q %q %v", l, uri, got, rest, ok)
			}
		}
	}
	for _, uri := range []string{"", "file:///a", "usher://", "usher://x", "usher://%zz/y"} {
		if _, _, ok := SplitServer(uri); ok {
			t.Errorf("%q names a server", uri)
		}
	}
}

func FuzzAddresses(f *testing.F) {
	f.Add("a{b}c{", "abc")
	f.Add("usher://a%20b/{x}", "usher://a%20b/1")
	f.Fuzz(func(t *testing.T, text, uri string) {
		ParseTemplate(text).Matches(uri)
		SplitServer(uri)
		if l, rest, ok := SplitServer(WithServer(text, uri)); !ok || l != text || rest != uri {
			t.Fatalf("%q %q: %q %q %v", text, uri, l, rest, ok)
		}
	})
}
