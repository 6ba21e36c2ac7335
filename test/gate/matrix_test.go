package gate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// caller is one kind of caller, and what exists for it.
type caller struct {
	name           string
	principal      string
	servers, tools []string
	profiles       []string
	ttl            time.Duration
	revoked        bool

	sees  func(server, account, tool string) bool
	whole func(server, account string) bool
}

func nothing(string, string, string) bool { return false }
func nowhere(string, string) bool         { return false }

var callers = []caller{
	{name: "no scope", sees: func(_, _, _ string) bool { return true }, whole: func(_, _ string) bool { return true }},
	{
		name: "scope by server", servers: []string{"crm"},
		sees: func(server, _, _ string) bool { return server == "crm" }, whole: func(server, _ string) bool { return server == "crm" },
	},
	{
		name: "scope by tool", tools: []string{"crm/read"},
		sees: func(server, _, tool string) bool { return server == "crm" && tool == "read" }, whole: nowhere,
	},
	{
		name: "scope by account", servers: []string{"crm@work"},
		sees:  func(server, account, _ string) bool { return server == "crm" && account == "work" },
		whole: func(server, account string) bool { return server == "crm" && account == "work" },
	},
	{
		name: "scope by profile", profiles: []string{"tools"},
		sees: func(server, _, tool string) bool { return server == "crm" && tool == "read" }, whole: nowhere,
	},
	{
		name: "other principal", principal: "eve",
		sees: func(_, account, _ string) bool { return account == "" }, whole: func(_, account string) bool { return account == "" },
	},
	{name: "revoked", revoked: true, sees: nothing, whole: nowhere},
	{name: "expired", ttl: time.Millisecond, sees: nothing, whole: nowhere},
}

// endpoint is one surface.
type endpoint struct {
	path            string
	kind            string // single, joined or meta
	server, account string // of a single one
	sees            func(server, account, tool string) bool
	whole           func(server, account string) bool
}

func all3(string, string, string) bool { return true }
func all2(string, string) bool         { return true }

var endpoints = []endpoint{
	{path: "/mcp", kind: "joined", sees: all3, whole: all2},
	{path: "/direct/mcp", kind: "joined", sees: all3, whole: all2},
	{path: "/meta/mcp", kind: "meta", sees: all3, whole: all2},
	{path: "/profiles/tools/mcp", kind: "joined", sees: func(server, _, tool string) bool { return server == "crm" && tool == "read" }, whole: nowhere},
	{path: "/profiles/crm/mcp", kind: "joined", sees: func(server, _, _ string) bool { return server == "crm" }, whole: func(server, _ string) bool { return server == "crm" }},
	single("crm", ""), single("hr", ""), single("crm", "work"), single("crm", "invented"), single("nobody", ""),
	lookalike("crm@"), lookalike("@work"), lookalike("CRM"), lookalike("crm%20"), lookalike("crm@work@"),
}

func single(server, account string) endpoint {
	name := label(server, account)
	here := func(s, a string) bool { return s == server && a == account }
	return endpoint{
		path: "/servers/" + name + "/mcp", kind: "single", server: server, account: account,
		sees: func(s, a, _ string) bool { return here(s, a) }, whole: here,
	}
}

// lookalike is the address of a server that does not exist, though it resembles one.
func lookalike(name string) endpoint {
	return endpoint{path: "/servers/" + name + "/mcp", kind: "single", sees: nothing, whole: nowhere}
}

func label(server, account string) string {
	if account == "" {
		return server
	}
	return server + "@" + account
}

// request is one request of the matrix.
type request struct{ name, params string }

// accounts are all that a request may name; the last two do not exist.
var accounts = [][2]string{{"crm", ""}, {"hr", ""}, {"crm", "work"}, {"crm", "invented"}, {"nobody", ""}}

// requests are what a caller tries with a method at an endpoint. A method without an
// entry fails the test.
func requests(e endpoint, method string) ([]request, bool) {
	var out []request
	add := func(name, params string) { out = append(out, request{name, params}) }
	switch method {
	case mcp.MethodInitialize, mcp.MethodDiscover, mcp.MethodPing, mcp.MethodToolsList, mcp.MethodPromptsList,
		mcp.MethodResourcesList, mcp.MethodTemplatesList:
		add("", "")
	case mcp.MethodSetLevel:
		add("", `"level":"debug"`)
	case mcp.MethodListen:
		add("", `"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`)
		for _, uri := range uris() {
			add("", fmt.Sprintf(`"notifications":{"resourceSubscriptions":[%q]}`, uri))
		}
	case mcp.MethodResourcesRead, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		for _, uri := range uris() {
			add(uri, fmt.Sprintf(`"uri":%q`, uri))
		}
	case mcp.MethodPromptsGet:
		for _, name := range names(e, "greet") {
			add(name, fmt.Sprintf(`"name":%q`, name))
		}
	case mcp.MethodComplete:
		for _, name := range names(e, "greet") {
			add("", fmt.Sprintf(`"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"who","value":"a"}`, name))
		}
		for _, uri := range uris() {
			add("", fmt.Sprintf(`"ref":{"type":"ref/resource","uri":%q},"argument":{"name":"who","value":"a"}`, uri))
		}
	case mcp.MethodToolsCall:
		return calls(e), true
	default:
		return nil, false
	}
	return out, true
}

// uris are all ways to name the resources of all accounts.
func uris() []string {
	out := []string{"crm://doc", "hr://doc", "other://doc"}
	for _, a := range accounts {
		out = append(out, fmt.Sprintf("usher://%s/%s://doc", strings.ReplaceAll(label(a[0], a[1]), "@", "%40"), a[0]))
	}
	return out
}

// names are all ways to name something at an endpoint.
func names(e endpoint, own ...string) []string {
	if e.kind == "single" {
		return own
	}
	var out []string
	for _, a := range accounts {
		for _, name := range own {
			prefix := a[0] + "__"
			if a[1] != "" {
				prefix = a[0] + "--" + a[1] + "__"
			}
			out = append(out, prefix+name)
		}
	}
	return out
}

// calls are all calls of tools at an endpoint.
func calls(e endpoint) []request {
	var out []request
	if e.kind == "meta" {
		for _, action := range []string{"help", "list_servers", "status"} {
			out = append(out, request{"mcp", fmt.Sprintf(`"name":"mcp","arguments":{"action":%q}`, action)})
		}
		for _, query := range []string{"CANARY", "read", "hr", "description"} {
			out = append(out, request{"mcp", fmt.Sprintf(`"name":"mcp","arguments":{"action":"search","query":%q,"limit":50}`, query)})
		}
		for _, a := range accounts {
			for _, action := range []string{"list_tools", "status", "login", "complete_login"} {
				out = append(out, request{"mcp", fmt.Sprintf(`"name":"mcp","arguments":{"action":%q,"server":%q,"redirect_url":"http://127.0.0.1:1/?code=x&state=y"}`, action, label(a[0], a[1]))})
			}
			for _, tool := range append(tools, "nonsense") {
				for _, action := range []string{"call", "describe_tool"} {
					out = append(out, request{"mcp", fmt.Sprintf(`"name":"mcp","arguments":{"action":%q,"server":%q,"tool":%q}`, action, label(a[0], a[1]), tool)})
				}
			}
		}
		return append(out, request{"mcp", `"name":"mcp","arguments":{"action":"login","server":"all"}`})
	}
	for _, name := range names(e, append(tools, "nonsense")...) {
		out = append(out, request{name, fmt.Sprintf(`"name":%q,"arguments":{}`, name)})
	}
	for _, a := range append(accounts, [2]string{"all", ""}) {
		for _, tool := range []string{"login", "status"} {
			out = append(out, request{tool, fmt.Sprintf(`"name":%q,"arguments":{"server":%q}`, tool, label(a[0], a[1]))})
		}
	}
	out = append(out, request{"status", `"name":"status","arguments":{}`})
	return out
}

// forbidden are the canaries that must not come back to a caller from an endpoint.
func forbidden(c caller, e endpoint) []string {
	sees := func(server, account, tool string) bool {
		return c.sees(server, account, tool) && e.sees(server, account, tool)
	}
	whole := func(server, account string) bool { return c.whole(server, account) && e.whole(server, account) }
	var out []string
	for _, server := range []string{"crm", "hr"} {
		for _, tool := range append(tools, "CANARY-"+server+"-unlisted-name") {
			if !sees(server, "", tool) && !sees(server, "work", tool) {
				out = append(out, canary(server, tool+"-description"), canary(server, tool+"-result"))
			}
		}
		if hidden := "CANARY-" + server + "-unlisted-name"; !sees(server, "", hidden) && !sees(server, "work", hidden) {
			out = append(out, hidden)
		}
		if !whole(server, "") && !whole(server, "work") {
			for _, part := range wholeParts {
				out = append(out, canary(server, part))
			}
		}
	}
	if !sees("crm", "work", "read") {
		out = append(out, workToken)
	}
	return out
}

// methodsOf reads the requests of clients from package mcp.
func methodsOf(t *testing.T) []string {
	t.Helper()
	var out []string
	files, err := filepath.Glob("../../mcp/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files of package mcp", err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, "Method") {
				if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
					out = append(out, strings.Trim(lit.Value, `"`))
				}
			}
			return true
		})
	}
	asked := []string{mcp.MethodElicit, mcp.MethodSample, mcp.MethodRoots}
	return slices.DeleteFunc(out, func(m string) bool { return strings.HasPrefix(m, "notifications/") || slices.Contains(asked, m) })
}

// TestMatrix tries every method at every endpoint as every kind of caller, before
// anything is known about the servers and after all of it is. No reply may hold a
// canary of what does not exist for the caller, and a server that does not exist for
// the caller must not hear of it at all.
func TestMatrix(t *testing.T) {
	methods := methodsOf(t)
	if len(methods) < 15 {
		t.Fatalf("only %v were found", methods)
	}
	for _, c := range callers {
		for name, form := range map[string]struct {
			warm     bool
			versions []string
		}{
			"cold":        {},
			"warm":        {warm: true},
			"warm legacy": {warm: true, versions: []string{mcp.V20251125, mcp.V20250618}},
		} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, []caller{c, {name: "owner"}}, form.versions...)
				if form.warm {
					w.warm(t)
				}
				w.matrix(t, c, methods, form.warm)
			})
		}
	}
}

// warm has the owner list everything, so that all of it is known.
func (w *world) warm(t *testing.T) {
	for _, method := range []string{mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList} {
		// A list does not wait for a slow server; the next one has it.
		for deadline := time.Now().Add(30 * time.Second); ; {
			status, reply := w.post(t, "owner", "/direct/mcp", method, "", "")
			if strings.Contains(reply, "CANARY-hr") && strings.Contains(reply, "CANARY-crm") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the owner sees %d %s", status, reply)
			}
		}
	}
}

func (w *world) matrix(t *testing.T, c caller, methods []string, warm bool) {
	sent := 0
	for _, e := range endpoints {
		bad := forbidden(c, e)
		for _, method := range methods {
			list, ok := requests(e, method)
			if !ok {
				t.Fatalf("%s has no requests in this test", method)
			}
			for _, r := range list {
				sent++
				for form, reply := range w.both(t, c, e, method, r) {
					for _, text := range bad {
						if strings.Contains(reply, text) {
							t.Errorf("%s %s %s {%s} (%s) leaks %s:\n%.600s", c.name, e.path, method, r.params, form, text, reply)
						}
					}
					if w.invalid[c.name] && !strings.Contains(reply, "Www-Authenticate") {
						t.Errorf("%s %s %s is let in: %.300s", c.name, e.path, method, reply)
					}
				}
			}
		}
	}
	for name, s := range w.servers {
		if n := s.hits.Load(); n != 0 && !warm && !exists(c, name) {
			t.Errorf("%s made %d requests reach %s", c.name, n, name)
		}
		for _, what := range s.used {
			tool := strings.TrimPrefix(what, "tool ")
			if !c.sees(name, "", tool) && !c.sees(name, "work", tool) {
				t.Errorf("%s ran %s of %s", c.name, what, name)
			}
		}
	}
	w.refusals(t, c, sent)
}

// exists reports whether anything of a server exists for the caller.
func exists(c caller, server string) bool {
	for _, account := range []string{"", "work"} {
		for _, tool := range tools {
			if c.sees(server, account, tool) {
				return true
			}
		}
	}
	return false
}

// both sends a request in the stateless protocol and within a session.
func (w *world) both(t *testing.T, c caller, e endpoint, method string, r request) map[string]string {
	out := map[string]string{}
	_, out["stateless"] = w.post(t, c.name, e.path, method, r.name, r.params)
	if method == mcp.MethodListen || method == mcp.MethodDiscover {
		return out
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	_, reply := w.send(t, c.name, http.MethodPost, e.path, hello, nil)
	out["initialize"] = reply
	session := headerOf(reply, wire.HeaderSession)
	if session == "" {
		return out
	}
	in := map[string]string{wire.HeaderSession: session, wire.HeaderVersion: mcp.V20251125}
	_, out["session"] = w.send(t, c.name, http.MethodPost, e.path, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{%s}}`, method, r.params), in)
	w.send(t, c.name, http.MethodDelete, e.path, "", in)
	return out
}

func headerOf(reply, name string) string {
	for line := range strings.Lines(reply) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// refusals wants the tries of a narrow caller in the audit log.
func (w *world) refusals(t *testing.T, c caller, sent int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	denied := 0
	for _, f := range w.finished {
		if f.Outcome == policy.OutcomeDenied {
			denied++
		}
	}
	narrow := len(c.servers)+len(c.tools) > 0
	if narrow && denied < 10 {
		t.Errorf("%d of %d requests are recorded as denied", denied, sent)
	}
}
