package policy

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
)

func decideText(r *rules, server, account, tool string) string {
	v := r.decide(server, account, tool)
	if v.denied == nil {
		return "ok " + v.tool
	}
	return v.denied.Error()
}

func TestRules(t *testing.T) {
	files := config.Server{
		Name:   "files",
		Tools:  config.ToolRules{Allow: []string{"read_*", "write"}, Deny: []string{"read_secret*"}, Rename: map[string]string{"write": "store"}},
		Origin: config.Origin{Layer: config.LayerProject, Line: 7, File: "/p/.mcp.json"},
	}
	locked := compileRules(configOf([]string{"github/list_*", "files", "mail@work/*"}, []string{"github/list_secrets", "files/read_key", "*@private"}, files).Usher, []config.Server{files})
	open := compileRules(configOf(nil, []string{"github/delete_*", "evil"}).Usher, nil)
	for _, tt := range []struct {
		name                  string
		rules                 *rules
		server, account, tool string
		want                  string
	}{
		{"allowed by default", open, "github", "", "search", "ok search"},
		{"denied", open, "github", "", "delete_repo", `github/delete_repo is denied by rule "deny github/delete_*" (user file, line 14)`},
		{"whole server denied", open, "evil", "", "x", `evil/x is denied by rule "deny evil" (user file, line 15)`},
		{"spawning it is denied", open, "evil", "", "", `evil is denied by rule "deny evil" (user file, line 15)`},
		{"spawning is not denied by a tool rule", open, "github", "", "", "ok "},
		{"allow list", locked, "github", "", "list_issues", "ok list_issues"},
		{"not in the allow list", locked, "github", "", "search", "github/search is denied: no allow rule matches it"},
		{"allow rules are exact", locked, "github", "", "List_issues", "github/List_issues is denied: no allow rule matches it"},
		{"deny wins", locked, "github", "", "list_secrets", `github/list_secrets is denied by rule "deny github/list_secrets" (user file, line 14)`},
		{"spawning what has allowed tools", locked, "github", "", "", "ok "},
		{"spawning what has none", locked, "other", "", "", "other is denied: no allow rule matches it"},
		{"server's own allow", locked, "files", "", "read_text", "ok read_text"},
		{"not in the server's own allow", locked, "files", "", "list", "files/list is denied: no allow rule matches it"},
		{"server's own deny", locked, "files", "", "read_secrets", `files/read_secrets is denied by rule "deny files/read_secret*" (project file, line 7)`},
		{"renamed, by its shown name", locked, "files", "", "store", "ok write"},
		{"renamed, by its own name", locked, "files", "", "write", "ok write"},
		{"account rule", locked, "mail", "work", "send", "ok send"},
		{"account rule, other account", locked, "mail", "home", "send", "mail@home/send is denied: no allow rule matches it"},
		{"account rule, default account", locked, "mail", "", "send", "mail/send is denied: no allow rule matches it"},
		{"account denied", locked, "files", "private", "read_text", `files@private/read_text is denied by rule "deny *@private" (user file, line 16)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // judged, then remembered
				if diff := cmp.Diff(tt.want, decideText(tt.rules, tt.server, tt.account, tt.tool)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestBrokenSettingsDenyEverything(t *testing.T) {
	c := configOf(nil, nil)
	c.Usher.Problem = errors.New("mcp.json:3:1: expected a comma")
	g := openGate(t, newFakeHost(simpleTool("x")), nil, &Options{Config: c})
	_, err := g.Call(context.Background(), callOf("s", "x"))
	if !errors.Is(err, ErrDenied) {
		t.Fatalf("%v, want ErrDenied", err)
	}
}

func TestHook(t *testing.T) {
	h := newFakeHost(simpleTool("a"), simpleTool("b"))
	var asked []string
	g := openGate(t, h, nil, &Options{
		Config: configOf(nil, nil, config.Server{Name: "s", Tools: config.ToolRules{Rename: map[string]string{"a": "alpha"}}}),
		Hook: func(_ context.Context, r HookRequest) Decision {
			asked = append(asked, r.Server+"/"+r.Tool)
			return Decision{Allow: r.Tool != "b", Reason: "not on Fridays"}
		},
	})
	if _, err := g.Call(t.Context(), callOf("s", "alpha")); err != nil {
		t.Error(err)
	}
	_, err := g.Call(t.Context(), callOf("s", "b"))
	if !errors.Is(err, ErrDenied) || err.Error() != "s/b is denied: not on Fridays" {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"s/a", "s/b"}, asked); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
	l, err := g.Tools(t.Context(), Caller{}, Key{Server: "s"})
	if err != nil || len(l.Tools) != 1 || l.Tools[0].Name != "alpha" {
		t.Errorf("listed %+v, %v", l.Tools, err)
	}
}

func TestConfigureAndRegisterTakeEffect(t *testing.T) {
	g := openGate(t, newFakeHost(simpleTool("x")), nil, nil)
	key := Key{Server: "s"}
	check := func(when string, denied bool) {
		t.Helper()
		if err := g.Allowed(t.Context(), Caller{}, key, "x"); errors.Is(err, ErrDenied) != denied {
			t.Errorf("%s: %v", when, err)
		}
	}
	check("at first", false)
	g.Configure(configOf(nil, []string{"s/x"}))
	check("after a deny rule", true)
	g.Configure(nil)
	check("after its removal", false)
	g.Register(config.Server{Name: "s", Tools: config.ToolRules{Deny: []string{"x"}}})
	check("after a rule of the server", true)
	g.Register(config.Server{Name: "s"})
	check("after its removal", false)
}

func TestVerdictsAreBounded(t *testing.T) {
	r := compileRules(config.Settings{}, []config.Server{{Name: "s"}})
	sc := &accountState{id: accountID{server: "s"}}
	for i := range 3 * maxVerdicts {
		sc.decide(r, "tool"+string(rune('a'+i%26))+string(rune(0x4e00+i)))
	}
	if n := len(*sc.ruledBy(r).tools.Load()); n > maxVerdicts {
		t.Errorf("%d verdicts are remembered", n)
	}
}

func TestDeniedHints(t *testing.T) {
	for _, tt := range []struct {
		err  DeniedError
		want string
	}{
		{DeniedError{Server: "s", Tool: "t", Rule: "deny s/t", Origin: config.Origin{File: "/f", Line: 3}}, "edit the rule at /f:3"},
		{DeniedError{Server: "s", Tool: "t", Rule: "deny s/t", Origin: config.Origin{File: "environment variable X"}}, "change environment variable X"},
		{DeniedError{Server: "s", Tool: "t", Reason: notAllowed}, "allow s/t"},
		{DeniedError{Server: "s", Tool: "t", Reason: "other"}, ""},
	} {
		if got := tt.err.Hint(); got != tt.want {
			t.Errorf("%v: hint %q, want %q", &tt.err, got, tt.want)
		}
	}
}
