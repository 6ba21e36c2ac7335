package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
)

// bypasses are attempts to reach delete_repo, or anything that a server might take
// for it, past the rule "deny github/delete_*".
var bypasses = []struct {
	name    string
	server  string // github when empty
	account string
	tool    string
	params  string // instead of a tool: the whole params
}{
	{name: "the name itself", tool: "delete_repo"},
	{name: "capitals", tool: "DELETE_REPO"},
	{name: "mixed case", tool: "Delete_Repo"},
	{name: "Kelvin sign and long s", tool: "delete_diſ\u212a"},
	{name: "dotless i", tool: "delete_fıle"},
	{name: "Cyrillic letters", tool: "dеlеtе_rеро"},
	{name: "Greek letters", tool: "delete_rερo"},
	{name: "fullwidth", tool: "ｄｅｌｅｔｅ＿ｒｅｐｏ"},
	{name: "mathematical bold", tool: "𝐝𝐞𝐥𝐞𝐭𝐞_𝐫𝐞𝐩𝐨"},
	{name: "circled", tool: "ⓓⓔⓛⓔⓣⓔ_ⓡⓔⓟⓞ"},
	{name: "precomposed accent", tool: "délete_repo"},
	{name: "combining accent", tool: "de\u0301lete_repo"},
	{name: "zero-width space", tool: "delete\u200b_repo"},
	{name: "zero-width joiner in front", tool: "\u200ddelete_repo"},
	{name: "soft hyphen", tool: "de\u00adlete_repo"},
	{name: "byte order mark", tool: "\ufeffdelete_repo"},
	{name: "tag characters", tool: "delete_repo\U000E0041"},
	{name: "variation selector", tool: "delete\ufe0f_repo"},
	{name: "right-to-left override", tool: "\u202edelete_repo"},
	{name: "Hangul filler", tool: "delete_repo\u3164"},
	{name: "NUL at the end", tool: "delete_repo\x00"},
	{name: "NUL and a harmless rest", tool: "delete_repo\x00list_repos"},
	{name: "harmless beginning, NUL", tool: "list_repos\x00delete_repo"},
	{name: "newline", tool: "delete_repo\n"},
	{name: "invalid UTF-8", tool: "delete_repo\xff"},
	{name: "blank at the end", tool: "delete_repo "},
	{name: "blank in front", tool: " delete_repo"},
	{name: "no-break space at the end", tool: "delete_repo\u00a0"},
	{name: "dot at the end", tool: "delete_repo."},
	{name: "dash for underscore", tool: "delete-repo"},
	{name: "dot for underscore", tool: "delete.repo"},
	{name: "slash for underscore", tool: "delete/repo"},
	{name: "en dash", tool: "delete–repo"},
	{name: "a slash that * might not cross", tool: "delete_a/b"},
	{name: "percent escape", tool: "delete%5frepo"},
	{name: "percent escape of a letter", tool: "%64elete_repo"},
	{name: "backslash", tool: `delete\_repo`},
	{name: "path that leads back", tool: "list_repos/../delete_repo"},
	{name: "the server in the tool", tool: "github/delete_repo"},
	{name: "the server and separator in the tool", tool: "github__delete_repo"},
	{name: "separator moved into the server", server: "github__delete", tool: "repo"},
	{name: "server in capitals", server: "GITHUB", tool: "delete_repo"},
	{name: "server with an account in its name", server: "github@work", tool: "delete_repo"},
	{name: "another account", account: "work", tool: "delete_repo"},
	{name: "server with a slash", server: "github/x", tool: "delete_repo"},
	{name: "server with a zero-width space", server: "git\u200bhub", tool: "delete_repo"},
	{name: "server with a blank", server: "github ", tool: "delete_repo"},
	{name: "shown name of a renamed tool", tool: "tidy_up"},
	{name: "name that a rename gives to two tools", tool: "twin"},
	{name: "renamed tool that is denied as it is shown", tool: "harmless"},
	{name: "name that a rename took away", tool: "delete_shown"},
	{name: "duplicate name, denied last", tool: "list_repos", params: `{"name":"list_repos","arguments":{},"name":"delete_repo"}`},
	{name: "duplicate name, denied first", tool: "list_repos", params: `{"name":"delete_repo","arguments":{},"name":"list_repos"}`},
	{name: "escaped duplicate name", tool: "list_repos", params: `{"name":"list_repos","n\u0061me":"delete_repo"}`},
	{name: "Name beside name", tool: "list_repos", params: `{"name":"list_repos","Name":"delete_repo"}`},
	{name: "name with NUL beside name", tool: "list_repos", params: `{"name":"list_repos","name\u0000":"delete_repo"}`},
	{name: "fullwidth name beside name", tool: "list_repos", params: `{"name":"list_repos","ｎame":"delete_repo"}`},
	{name: "Cyrillic name beside name", tool: "list_repos", params: `{"name":"list_repos","nаme":"delete_repo"}`},
	{name: "name with a blank beside name", tool: "list_repos", params: `{"name":"list_repos","name ":"delete_repo"}`},
	{name: "name with a zero-width space beside name", tool: "list_repos", params: `{"name":"list_repos","na\u200bme":"delete_repo"}`},
	{name: "fullwidth arguments beside arguments", tool: "list_repos", params: `{"name":"list_repos","arguments":{},"ａrguments":{"all":true}}`},
	{name: "header and body differ", tool: "list_repos", params: `{"name":"delete_repo","arguments":{}}`},
	{name: "header and body differ in case", tool: "list_repos", params: `{"name":"List_Repos"}`},
	{name: "name is no text", tool: "list_repos", params: `{"name":["delete_repo"]}`},
	{name: "no name", tool: ""},
	{name: "no name in the params", tool: "", params: `{"arguments":{}}`},
	{name: "half a surrogate", tool: "delete_repo\ufffd", params: `{"name":"delete_repo\ud800"}`},
	{name: "escaped letters", tool: "delete_repo", params: `{"name":"\u0064elete_repo"}`},
	{name: "params are a list", tool: "list_repos", params: `["delete_repo"]`},
	{name: "broken params", tool: "list_repos", params: `{"name":"list_repos"`},
	{name: "endless name", tool: strings.Repeat("x", 2000) + "delete_repo"},
}

// github lists everything a server could, look-alikes too: nothing may rest on the
// server not having them.
func bypassGate(t *testing.T) (*fakeHost, *Gate) {
	tools := []string{simpleTool("list_repos"), simpleTool("delete_repo"), simpleTool("delete_shown"), simpleTool("purge"), simpleTool("a"), simpleTool("b")}
	h := newFakeHost(tools...)
	cfg := configOf(nil, []string{"github/delete_*"}, config.Server{
		Name: "github",
		Tools: config.ToolRules{Rename: map[string]string{
			"delete_repo": "tidy_up", "a": "twin", "b": "twin", "harmless": "delete_harmless", "purge": "delete_shown",
		}},
	})
	return h, openGate(t, h, nil, &Options{Config: cfg})
}

func TestNothingBypassesADenyRule(t *testing.T) {
	if len(bypasses) < 30 {
		t.Fatalf("%d attempts", len(bypasses))
	}
	for _, tt := range bypasses {
		t.Run(tt.name, func(t *testing.T) {
			h, g := bypassGate(t)
			if tt.server == "" {
				tt.server = "github"
			}
			c := Call{Key: Key{Server: tt.server, Account: tt.account}, Tool: tt.tool}
			if tt.params != "" {
				c.Params = []byte(tt.params)
			}
			if _, err := g.Call(t.Context(), c); err == nil {
				t.Error("it was let through")
			}
			if tt.params != "" {
				var req Request
				req.Method, req.Params = mcp.MethodToolsCall, c.Params
				if tt.name != "header and body differ in case" {
					if _, err := g.Do(t.Context(), Caller{}, c.Key, req); err == nil {
						t.Error("Do let it through")
					}
				}
			}
			if n := h.calls.Load(); n != 0 {
				t.Errorf("the server was asked: %s", h.log())
			}
		})
	}
}

// The rules alone, without a list of tools to compare with, must catch what a
// server could take for the denied name.
func TestDenyRulesCatchLookAlikes(t *testing.T) {
	unlike := map[string]bool{ // other tools, which only the list of tools can refuse
		"path that leads back": true, "the server in the tool": true, "the server and separator in the tool": true,
		"separator moved into the server": true, "no name": true,
	}
	_, g := bypassGate(t)
	for _, tt := range bypasses {
		if tt.params != "" || unlike[tt.name] {
			continue
		}
		if tt.server == "" {
			tt.server = "github"
		}
		err := g.Allowed(t.Context(), Caller{}, Key{Server: tt.server, Account: tt.account}, tt.tool)
		if !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// No look-alike is taken for an allowed tool.
func TestAllowRulesAreExact(t *testing.T) {
	g := openGate(t, newFakeHost(), nil, &Options{Config: configOf([]string{"github/delete_repo"}, nil)})
	for _, tt := range bypasses {
		if tt.tool == "" || tt.tool == "delete_repo" && (tt.server == "" || tt.server == "github") {
			continue
		}
		if tt.server == "" {
			tt.server = "github"
		}
		if err := g.Allowed(t.Context(), Caller{}, Key{Server: tt.server, Account: tt.account}, tt.tool); !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %q is taken for delete_repo", tt.name, tt.tool)
		}
	}
	if err := g.Allowed(t.Context(), Caller{}, Key{Server: "github"}, "delete_repo"); err != nil {
		t.Error(err)
	}
}

// A tool call must not slip through as another method.
func TestMethodBypass(t *testing.T) {
	h, g := bypassGate(t)
	for _, method := range []string{"Tools/Call", "tools/call ", "tools_call", "tools\u200b/call", "tools/cаll", "tools%2fcall", "TOOLS/CALL", "tools//call", "/tools/call", "tools/call/", "tools/./call", "tools/x/../call", "ｔools/call", "tools\\call", "toolsCall"} {
		var req Request
		req.Method, req.Params = method, []byte(`{"name":"delete_repo"}`)
		if _, err := g.Do(t.Context(), Caller{}, Key{Server: "github"}, req); err == nil {
			t.Errorf("%q was let through", method)
		}
	}
	if n := h.calls.Load(); n != 0 {
		t.Errorf("the server was asked: %s", h.log())
	}
}

// What is allowed gets through, by all its names, under the server's own name.
func TestRenamesReachTheServer(t *testing.T) {
	h := newFakeHost(simpleTool("write"), simpleTool("other"))
	g := openGate(t, h, nil, &Options{Config: configOf(nil, nil, config.Server{
		Name: "files", Tools: config.ToolRules{Rename: map[string]string{"write": "store"}},
	})})
	for _, c := range []Call{
		callOf("files", "store"), callOf("files", "write"),
		{Key: Key{Server: "files"}, Tool: "store", Request: withParams([]byte(`{ "arguments":{"n":9007199254740993}, "name" : "store", "x":1}`))},
	} {
		if _, err := g.Call(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	want := []string{
		`tools/call {"name":"write","arguments":{}}`,
		`tools/call {"name":"write","arguments":{}}`,
		`tools/call {"arguments":{"n":9007199254740993},"name" : "write","x":1}`,
	}
	for i, got := range h.log() {
		if got != want[i] {
			t.Errorf("sent %s, want %s", got, want[i])
		}
	}
	l, err := g.Tools(t.Context(), Caller{}, Key{Server: "files"})
	if err != nil || len(l.Tools) != 2 || l.Tools[0].Name != "store" || l.Tools[0].Own != "write" || string(l.Tools[0].Definition) != simpleTool("write") {
		t.Errorf("listed %+v, %v", l.Tools, err)
	}
}
