package surface

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
)

// A tool of a server that is down is not an unknown one: the agent is told which
// server cannot be reached, and when it is tried again.
func TestDirectServerDown(t *testing.T) {
	w := metaRig(t)
	for _, tt := range []struct{ method, params string }{
		{mcp.MethodToolsCall, `{"name":"gone__x","arguments":{}}`},
		{mcp.MethodToolsCall, `{"name":"gone__x","arguments":{}}`}, // it has just been tried
		{mcp.MethodPromptsGet, `{"name":"gone__x"}`},
	} {
		_, err := try(t, w.Direct(), modernAgent, tt.method, tt.params)
		if err == nil {
			t.Fatalf("%s has an answer", tt.method)
		}
		p := w.Explain(err)
		if p.Kind != KindUnavailable || p.Server != "gone" || !strings.Contains(p.Text, "gone cannot be reached") || p.RetryAfter <= 0 {
			t.Errorf("%s: %+v", tt.method, p)
		}
	}
	_, err := try(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"needs__x"}`)
	if w.Explain(err).Kind != KindLogin {
		t.Errorf("a server that needs a login: %v", err)
	}
	var werr *mcp.Error
	if _, err := try(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"alpha__x"}`); !errors.As(err, &werr) || werr.Code != mcp.CodeInvalidParams {
		t.Errorf("a tool that does not exist: %v", err)
	}
}

// The direct view shows the state of servers and logins, as the meta view does.
func TestDirectStatus(t *testing.T) {
	w := metaRig(t)
	list := names(do(t, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`), "tools", "name")
	if !slices.Contains(list, statusName) {
		t.Errorf("%v lacks %s", list, statusName)
	}
	status := func(args string) (string, bool) {
		return text(do(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"status","arguments":`+args+`}`))
	}
	got, failed := status(`{}`)
	for _, want := range []string{`"server":"alpha"`, `"server":"gone"`, `"logins":[{"server":"alpha"`, `"state":"failed","reason":"access_denied"`} {
		if failed || !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if got, failed = status(`{"server":"beta"}`); failed || !strings.Contains(got, `"server":"beta"`) || strings.Contains(got, "alpha") {
		t.Errorf("of one: %s", got)
	}
	// The login to a new account failed, so there is no such account.
	if got, failed = status(`{"server":"alpha@new"}`); failed || !strings.Contains(got, `"reason":"access_denied"`) {
		t.Errorf("of an account whose login failed: %s", got)
	}
	if got, failed = status(`{"server":"bta"}`); !failed || !strings.Contains(got, "did you mean beta?") || strings.Contains(got, "action") {
		t.Errorf("of nobody: %s", got)
	}
	narrow := modernAgent
	narrow.Servers = []string{"beta"}
	got, _ = text(do(t, w.Direct(), narrow, mcp.MethodToolsCall, `{"name":"status"}`))
	if strings.Contains(got, "alpha") || strings.Contains(got, "gone") || !strings.Contains(got, "beta") {
		t.Errorf("outside of its scope: %s", got)
	}
}

// Hints name only what the view has: the meta view has actions, the direct view tools.
func TestHintsFitTheView(t *testing.T) {
	w := metaRig(t)
	foreign := map[string][]string{
		"meta":   {"tool `login`", "tool `status`"},
		"direct": {"action", "complete_login", "list_servers"},
	}
	for _, tt := range []struct{ name, server, redirect string }{
		{"a link", "alpha", ""},
		{"by paste", "alpha@paste", ""},
		{"by device code", "alpha@device", ""},
		{"all", "all", ""},
		{"unknown", "alpa", ""},
		{"fails", "beta", ""},
		{"completed", "alpha", "http://127.0.0.1/callback?code=1"},
		{"not completed", "beta", "http://127.0.0.1/callback?code=1"},
	} {
		args := `"server":"` + tt.server + `"`
		action := "login"
		if tt.redirect != "" {
			args, action = args+`,"redirect_url":"`+tt.redirect+`"`, "complete_login"
		}
		for view, call := range map[string]string{
			"meta":   `{"name":"mcp","arguments":{"action":"` + action + `",` + args + `}}`,
			"direct": `{"name":"login","arguments":{` + args + `}}`,
		} {
			v := w.Meta()
			if view == "direct" {
				v = w.Direct()
			}
			got, _ := text(do(t, v, modernAgent, mcp.MethodToolsCall, call))
			for _, bad := range foreign[view] {
				if strings.Contains(got, bad) {
					t.Errorf("%s, %s names %q: %s", view, tt.name, bad, got)
				}
			}
		}
	}
	_, _ = try(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"needs__x"}`) // shows that it needs a login
	st, _ := text(do(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"status","arguments":{"server":"needs"}}`))
	if strings.Contains(st, "action") || strings.Contains(st, "usher login") || !strings.Contains(st, "tool `login`") {
		t.Errorf("the status of a server that needs a login: %s", st)
	}
}

// A person whose client shows no Markdown can copy the address: it stands alone on a
// line.
func TestLoginBareURL(t *testing.T) {
	w := metaRig(t)
	for server, url := range map[string]string{
		"alpha": "https://example.com/authorize", "alpha@paste": "https://example.com/authorize?a=(b)", "alpha@device": "https://example.com/device",
		"all": "https://example.com/authorize",
	} {
		got, failed := text(do(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"login","arguments":{"server":"`+server+`"}}`))
		alone := slices.ContainsFunc(strings.Split(got, "\n"), func(line string) bool { return strings.TrimSpace(line) == url })
		target := strings.NewReplacer("(", "%28", ")", "%29").Replace(url)
		if failed || !alone || !strings.Contains(got, "]("+target+")") {
			t.Errorf("%s: %s", server, got)
		}
	}
	got, _ := text(do(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"login","arguments":{"server":"alpha@device"}}`))
	if !strings.Contains(got, "**WDJB**") {
		t.Errorf("no code: %s", got)
	}
}

// login all shows what became of every server, also of those that failed.
func TestLoginAllText(t *testing.T) {
	w := metaRig(t)
	do(t, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`) // connects those that work
	got, failed := text(do(t, w.Meta(), modernAgent, mcp.MethodToolsCall, `{"name":"mcp","arguments":{"action":"login","server":"all"}}`))
	for _, want := range []string{"**needs**: [log in](", "**gone**: failed: cannot be resolved"} {
		if failed || !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	for _, bad := range []string{"alpha", "switched-off"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q names %s", got, bad)
		}
	}
	narrow := modernAgent
	narrow.Servers = []string{"gone"}
	got, _ = text(do(t, w.Direct(), narrow, mcp.MethodToolsCall, `{"name":"login","arguments":{"server":"all"}}`))
	if strings.Contains(got, "needs") || !strings.Contains(got, "gone") {
		t.Errorf("outside of its scope: %s", got)
	}
	stdio := config.Server{Name: "local", Transport: config.TransportStdio, Command: "true"}
	none := start(t, []config.Server{stdio}, options{Logins: &logins{}}, nil)
	if got, _ = text(do(t, none.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"login","arguments":{"server":"all"}}`)); got != "No server needs a login." {
		t.Errorf("nothing to do: %s", got)
	}
}
