package gate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

var (
	nearPattern  = regexp.MustCompile(`;? ?did you mean ([^?]*)\?`)
	otherPattern = regexp.MustCompile(`; (\S+) has one that may be meant: (\S+)\.`)
	afterNoTool  = regexp.MustCompile(`(?s)(has no tool named "?NAME"?).*`)
	fullPattern  = regexp.MustCompile(`usher://([^/\s"\\]+)/`)
)

// suggestions fails if an error suggests something that does not exist for the client.
func (w *run) suggestions(rt *rapid.T, sc scene, r *reply) {
	if !r.failed() {
		return
	}
	ok := map[string]bool{}
	wide := place{} // the places beside a profile
	for _, p := range []place{sc.at, wide} {
		if p == wide && sc.at.kind != "single" {
			continue
		}
		for _, s := range w.st.reach(sc.client, p) {
			ok[s.String()] = true
			for _, tool := range w.st.toolsAt(sc.client, p, s) {
				ok[tool], ok[s.shown(tool)], ok[s.String()+" "+tool] = true, true, true
			}
		}
		for _, s := range w.st.wholes(sc.client, p) {
			ok[s.shown("greet")] = true
		}
	}
	text := r.text()
	for _, m := range nearPattern.FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], " or ") {
			if !ok[strings.Trim(name, `"`)] {
				rt.Fatalf("LEAK: %s: %q is suggested: %s", sc, name, text)
			}
		}
	}
	if m := otherPattern.FindStringSubmatch(text); m != nil && !ok[m[1]+" "+m[2]] {
		rt.Fatalf("LEAK: %s: %s of %s is suggested: %s", sc, m[2], m[1], text)
	}
}

// same wants the errors about two names to be the same, but for the names and for
// what is suggested in their place.
func (w *run) same(rt *rapid.T, sc scene, a *reply, nameA string, b *reply, nameB string) {
	rt.Helper()
	form := func(r *reply, name string) string {
		text := strings.ReplaceAll(r.text(), name, "NAME")
		text = nearPattern.ReplaceAllString(text, "")
		text = afterNoTool.ReplaceAllString(text, "$1")
		return fmt.Sprint(r.status, r.Error != nil, r.content.IsError, " ", strings.ReplaceAll(text, `NAME".`, `NAME"`))
	}
	if x, y := form(a, nameA), form(b, nameB); x != y {
		rt.Fatalf("%s: the error about %s differs from that about %s:\n%s\n%s", sc, nameA, nameB, x, y)
	}
}

// refusal checks the reply of a single server to something that it does not do.
func (w *run) refusal(rt *rapid.T, sc scene, n demand, tool string, r *reply) {
	rt.Helper()
	v, hidden := w.st.may(sc.client, sc.at, n, sc.at.server, sc.at.account, tool)
	want := []verdict{v}
	if sc.in != nil && v == denied { // it was let in earlier, so its scope may be asked before the rules
		at := sc.at
		at.kind = ""
		first, _ := w.st.may(sc.client, at, n, sc.at.server, sc.at.account, tool)
		want = append(want, first)
	}
	texts := map[verdict]string{unsupported: "is not supported by", denied: "denied by policy", noTool: "has no tool named", blocked: "is blocked"}
	if !r.failed() || !slices.ContainsFunc(want, func(v verdict) bool { return strings.Contains(r.text(), texts[v]) }) {
		rt.Fatalf("%s: it is %v, but: %.600s", sc, want, r.raw)
	}
	w.recorded(rt, sc, hidden, spot{sc.at.server, sc.at.account}, policy.OutcomeDenied, policy.OutcomeChanged)
}

// list compares one of the four lists.
func (w *run) list(rt *rapid.T) {
	sc := w.scene(rt)
	what := rapid.SampledFrom([]string{"tools", "prompts", "resources", "resourceTemplates"}).Draw(rt, "list")
	method := map[string]string{"tools": mcp.MethodToolsList, "prompts": mcp.MethodPromptsList, "resources": mcp.MethodResourcesList, "resourceTemplates": mcp.MethodTemplatesList}[what]
	w.lab.take()
	r := w.ask(rt, sc, method, "", "")
	if w.gone(rt, sc, r) {
		return
	}
	n := theWhole
	if what == "tools" {
		n = aServer
	}
	if sc.at.kind == "single" {
		if v, _ := w.st.may(sc.client, sc.at, n, sc.at.server, sc.at.account, ""); v != fine {
			w.refusal(rt, sc, n, "", r)
			return
		}
	}
	if sc.at.kind == "meta" && what != "tools" {
		if !r.failed() {
			rt.Fatalf("%s: %s is answered: %s", sc, method, r.raw)
		}
		return
	}
	want := w.st.list(sc.client, sc.at, what)
	w.eventually(rt, sc, what, want, func() []string { return namesIn(rt, r, what) }, func() { r = w.ask(rt, sc, method, "", "") })
}

// eventually wants a list to become what it must be. It may lack what usher has not
// read yet, for a moment; it may never have more.
func (w *run) eventually(rt *rapid.T, sc scene, what string, want []string, got func() []string, again func()) {
	rt.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(20 * time.Millisecond) {
		names := got()
		slices.Sort(names)
		for _, name := range names {
			if !slices.Contains(want, name) {
				rt.Fatalf("LEAK: %s: %s has %q, want %q", sc, what, names, want)
			}
		}
		if slices.Equal(names, want) {
			return
		}
		if time.Now().After(deadline) {
			rt.Fatalf("%s: %s is %q, want %q", sc, what, names, want)
		}
		again()
	}
}

func namesIn(rt *rapid.T, r *reply, what string) (out []string) {
	if r.failed() {
		rt.Fatalf("no list: %s", r.raw)
	}
	var lists map[string]json.RawMessage
	must(rt, json.Unmarshal(r.Result, &lists))
	var items []struct{ Name, URI, URITemplate string }
	must(rt, json.Unmarshal(lists[what], &items))
	for _, item := range items {
		switch what {
		case "resources":
			out = append(out, item.URI)
		case "resourceTemplates":
			out = append(out, item.URITemplate)
		default:
			out = append(out, item.Name)
		}
	}
	return out
}

// target draws what a request is about: at a single server that one.
func (w *run) target(rt *rapid.T, sc scene) spot {
	if sc.at.kind == "single" {
		return spot{sc.at.server, sc.at.account}
	}
	return rapid.SampledFrom(spots).Draw(rt, "target")
}

// call calls a tool.
func (w *run) call(rt *rapid.T) {
	sc := w.scene(rt)
	s := w.target(rt, sc)
	tool := rapid.SampledFrom(append([]string{"nonsense"}, modelTools...)).Draw(rt, "tool")
	send := func(s spot, tool string) *reply {
		switch sc.at.kind {
		case "meta":
			return w.act(rt, sc, "call", s.String(), tool)
		case "joined":
			return w.ask(rt, sc, mcp.MethodToolsCall, s.shown(tool), fmt.Sprintf(`"name":%q,"arguments":{}`, s.shown(tool)))
		}
		return w.ask(rt, sc, mcp.MethodToolsCall, tool, fmt.Sprintf(`"name":%q,"arguments":{}`, tool))
	}
	w.lab.take()
	r := send(s, tool)
	if w.gone(rt, sc, r) {
		return
	}
	v, hidden := w.st.may(sc.client, sc.at, aTool, s.server, s.label, tool)
	switch {
	case v == fine:
		want := canary(s.server, tool+"-result")
		if s.label != "" {
			want += bearerOf(account{sc.principal, s.server, s.label})
		}
		if r.failed() || r.text() != want {
			rt.Fatalf("%s: %s of %s says %.600s, want %s", sc, tool, s, r.raw, want)
		}
		w.recorded(rt, sc, true, s, policy.OutcomeOK)
	case sc.at.kind == "single":
		w.refusal(rt, sc, aTool, tool, r)
	case v == blocked && strings.Contains(r.text(), "is blocked") && r.failed():
		w.recorded(rt, sc, true, s, policy.OutcomeChanged)
	default:
		w.recorded(rt, sc, hidden, s, policy.OutcomeDenied, policy.OutcomeChanged)
		w.neverWas(rt, sc, s, tool, r, send)
	}
}

// neverWas compares the error about a tool with that about one that never was.
func (w *run) neverWas(rt *rapid.T, sc scene, s spot, tool string, r *reply, send func(spot, string) *reply) {
	v, _ := w.st.may(sc.client, sc.at, aServer, s.server, s.label, "")
	switch {
	case sc.at.kind == "joined":
		w.same(rt, sc, r, s.shown(tool), send(spot{"zzz999", ""}, tool), "zzz999__"+tool)
	case v != fine:
		w.same(rt, sc, r, s.String(), send(spot{"zzz999", ""}, tool), "zzz999")
	default:
		w.same(rt, sc, r, tool, send(s, "zzz999"), "zzz999")
	}
}

// act uses the tool of the meta surface.
func (w *run) act(rt *rapid.T, sc scene, action, server, tool string) *reply {
	return w.ask(rt, sc, mcp.MethodToolsCall, "mcp", fmt.Sprintf(`"name":"mcp","arguments":{"action":%q,"server":%q,"tool":%q,"query":"canary","limit":50}`, action, server, tool))
}

func (w *run) prompt(rt *rapid.T) {
	w.usePrompt(rt, func(sc scene, name string) *reply {
		return w.ask(rt, sc, mcp.MethodPromptsGet, name, fmt.Sprintf(`"name":%q`, name))
	}, func(s spot) string { return canary(s.server, "prompt-result") }, true)
}

func (w *run) complete(rt *rapid.T) {
	w.usePrompt(rt, func(sc scene, name string) *reply {
		return w.ask(rt, sc, mcp.MethodComplete, "", fmt.Sprintf(`"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"who","value":"a"}`, name))
	}, func(spot) string { return "alpha" }, false)
}

// usePrompt is for what names a prompt.
func (w *run) usePrompt(rt *rapid.T, send func(scene, string) *reply, want func(spot) string, records bool) {
	sc := w.scene(rt)
	s := w.target(rt, sc)
	name := s.shown("greet")
	if sc.at.kind == "single" {
		name = "greet"
	}
	w.lab.take()
	r := send(sc, name)
	if w.gone(rt, sc, r) {
		return
	}
	v, hidden := w.st.may(sc.client, sc.at, theWhole, s.server, s.label, "")
	switch {
	case sc.at.kind == "meta":
		if !r.failed() {
			rt.Fatalf("%s: prompts are answered: %s", sc, r.raw)
		}
	case v == fine:
		if r.failed() || !strings.Contains(string(r.Result), want(s)) {
			rt.Fatalf("%s: the prompt of %s says %.600s", sc, s, r.raw)
		}
		w.recorded(rt, sc, records, s, policy.OutcomeOK)
	case sc.at.kind == "single":
		w.refusal(rt, sc, theWhole, "", r)
	default:
		w.recorded(rt, sc, hidden, s, policy.OutcomeDenied)
		w.same(rt, sc, r, name, send(sc, "zzz999__greet"), "zzz999__greet")
	}
}

// address draws a way to name a resource.
func (w *run) address(rt *rapid.T) string {
	s := rapid.SampledFrom(spots).Draw(rt, "owner")
	uri := rapid.SampledFrom([]string{s.server + "://doc", "shared://doc", "fake://item/7"}).Draw(rt, "uri")
	switch rapid.SampledFrom([]string{"bare", "full", "escaped"}).Draw(rt, "form") {
	case "full":
		return s.full(uri)
	case "escaped":
		return strings.Replace(s.full(uri), "@", "%40", 1)
	}
	return uri
}

func (w *run) read(rt *rapid.T) {
	w.useResource(rt, w.scene(rt), mcp.MethodResourcesRead)
}

// subscribe subscribes in a session, and lets go again.
func (w *run) subscribe(rt *rapid.T) {
	sc := w.scene(rt)
	if sc.in == nil {
		w.open(rt)
		return
	}
	uri := w.useResource(rt, sc, mcp.MethodSubscribe)
	w.ask(rt, sc, mcp.MethodUnsubscribe, uri, fmt.Sprintf(`"uri":%q`, uri))
}

func (w *run) useResource(rt *rapid.T, sc scene, method string) (uri string) {
	uri = w.address(rt)
	send := func(uri string) *reply { return w.ask(rt, sc, method, uri, fmt.Sprintf(`"uri":%q`, uri)) }
	w.lab.take()
	r := send(uri)
	switch {
	case w.gone(rt, sc, r):
	case sc.at.kind == "meta":
		if !r.failed() {
			rt.Fatalf("%s: resources are answered: %s", sc, r.raw)
		}
	case sc.at.kind == "single":
		s := spot{sc.at.server, sc.at.account}
		if v, _ := w.st.may(sc.client, sc.at, theWhole, s.server, s.label, ""); v != fine {
			w.refusal(rt, sc, theWhole, "", r)
		} else {
			w.resource(rt, sc, method, s, uri, r)
		}
	default:
		w.joinedResource(rt, sc, method, uri, r, send)
	}
	return uri
}

// resource wants what a server has at an address.
func (w *run) resource(rt *rapid.T, sc scene, method string, s spot, uri string, r *reply) {
	has := slices.Contains(urisOf(s.server), uri)
	switch {
	case method == mcp.MethodSubscribe:
		if r.failed() {
			rt.Fatalf("%s: no subscription to %s of %s: %s", sc, uri, s, r.raw)
		}
	case has != !r.failed(), has && !strings.Contains(r.raw, canary(s.server, "resource-result")):
		rt.Fatalf("%s: %s of %s says %.600s", sc, uri, s, r.raw)
	case has:
		w.recorded(rt, sc, true, s, policy.OutcomeOK)
	}
}

func (w *run) joinedResource(rt *rapid.T, sc scene, method, uri string, r *reply, send func(string) *reply) {
	to, rest := w.st.route(sc.client, sc.at, uri)
	visible := w.st.wholes(sc.client, sc.at)
	// An address leads to the server that had it alone, until the view is made again.
	first := len(to) > 1 && (method == mcp.MethodSubscribe || slices.ContainsFunc(to, func(s spot) bool {
		return strings.Contains(r.raw, canary(s.server, "resource-result"))
	}))
	if len(to) == 1 {
		w.resource(rt, sc, method, to[0], rest, r)
	} else if !r.failed() && !first {
		rt.Fatalf("%s: %s leads to %v, but: %.600s", sc, uri, to, r.raw)
	}
	for _, m := range fullPattern.FindAllStringSubmatch(strings.ReplaceAll(r.text(), uri, ""), -1) {
		name := strings.ReplaceAll(m[1], "%40", "@")
		if name != "SERVER" && !slices.ContainsFunc(visible, func(s spot) bool { return s.String() == name }) {
			rt.Fatalf("LEAK: %s: %s is named: %s", sc, name, r.text())
		}
	}
	if len(to) > 0 {
		return
	}
	for _, s := range spots {
		if strings.HasPrefix(strings.Replace(uri, "%40", "@", 1), s.full("")) {
			_, hidden := w.st.may(sc.client, sc.at, theWhole, s.server, s.label, "")
			w.recorded(rt, sc, hidden, s, policy.OutcomeDenied)
		}
	}
	w.same(rt, sc, r, uri, send("zzz999://doc"), "zzz999://doc")
}

func (w *run) search(rt *rapid.T) {
	sc := w.scene(rt, "meta")
	var want []string
	for _, s := range w.st.reach(sc.client, sc.at) {
		for _, tool := range w.st.toolsAt(sc.client, sc.at, s) {
			want = append(want, s.String()+" / "+tool)
		}
	}
	slices.Sort(want)
	r := w.act(rt, sc, "search", "", "")
	w.eventually(rt, sc, "search", want, func() (out []string) {
		for line := range strings.Lines(r.text()) {
			if name, _, _ := strings.Cut(strings.TrimSpace(line), " - "); strings.Contains(name, " / ") && !strings.HasPrefix(name, "(") {
				out = append(out, name)
			}
		}
		return out
	}, func() { r = w.act(rt, sc, "search", "", "") })
}

func (w *run) describe(rt *rapid.T) {
	sc := w.scene(rt, "meta")
	s := w.target(rt, sc)
	tool := rapid.SampledFrom(append([]string{"nonsense"}, modelTools...)).Draw(rt, "tool")
	send := func(s spot, tool string) *reply { return w.act(rt, sc, "describe_tool", s.String(), tool) }
	w.lab.take()
	r := send(s, tool)
	v, hidden := w.st.may(sc.client, sc.at, aTool, s.server, s.label, tool)
	switch v {
	case fine:
		if want := describedAs(s.server, tool, w.st.version[s.server]); r.failed() || !strings.Contains(r.text(), want) {
			rt.Fatalf("%s: %s of %s is %s, want %s", sc, tool, s, r.raw, want)
		}
	case blocked:
		if !r.failed() || !strings.Contains(r.text(), "is blocked") {
			rt.Fatalf("%s: %s of %s is blocked, but: %s", sc, tool, s, r.raw)
		}
	default:
		w.recorded(rt, sc, hidden, s, policy.OutcomeDenied)
		w.neverWas(rt, sc, s, tool, r, send)
	}
}

func (w *run) listTools(rt *rapid.T) {
	sc := w.scene(rt, "meta")
	s := w.target(rt, sc)
	send := func(s spot, _ string) *reply { return w.act(rt, sc, "list_tools", s.String(), "") }
	w.lab.take()
	r := send(s, "")
	if v, hidden := w.st.may(sc.client, sc.at, aServer, s.server, s.label, ""); v != fine {
		w.recorded(rt, sc, hidden, s, policy.OutcomeDenied)
		w.neverWas(rt, sc, s, "", r, send)
		return
	}
	w.eventually(rt, sc, "list_tools", w.st.toolsAt(sc.client, sc.at, s), func() (out []string) {
		if r.failed() {
			rt.Fatalf("%s: the tools of %s: %s", sc, s, r.raw)
		}
		for line := range strings.Lines(r.text()) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), " - ")
			if name != "" && !strings.HasPrefix(name, "(") && !strings.HasSuffix(name, "offers no tools.") {
				out = append(out, name)
			}
		}
		return out
	}, func() { r = send(s, "") })
}

func (w *run) listServers(rt *rapid.T) {
	sc := w.scene(rt, "meta")
	want := []string{}
	for _, s := range w.st.reach(sc.client, sc.at) {
		want = append(want, fmt.Sprintf("%s %d", s, len(w.st.toolsAt(sc.client, sc.at, s))))
	}
	slices.Sort(want)
	line := regexp.MustCompile(`(?m)^(\S+): .*, (\d+) tools?`)
	var r *reply
	again := func() { r = w.act(rt, sc, "list_servers", "", "") }
	again()
	w.eventually(rt, sc, "list_servers", want, func() []string {
		out := []string{}
		for _, m := range line.FindAllStringSubmatch(r.text(), -1) {
			out = append(out, m[1]+" "+m[2])
		}
		return out
	}, again)
}

func (w *run) status(rt *rapid.T) {
	sc := w.scene(rt, "meta")
	s := rapid.SampledFrom(append([]spot{{}}, spots...)).Draw(rt, "of")
	send := func(s spot, _ string) *reply { return w.act(rt, sc, "status", s.String(), "") }
	w.lab.take()
	r := send(s, "")
	if s.server != "" {
		if v, hidden := w.st.may(sc.client, sc.at, aServer, s.server, s.label, ""); v != fine {
			if w.lab.tried[account{sc.principal, s.server, s.label}] && !r.failed() {
				return // a failed login of the same principal stays visible
			}
			w.recorded(rt, sc, hidden, s, policy.OutcomeDenied)
			w.neverWas(rt, sc, s, "", r, send)
			return
		}
	}
	var out struct {
		Servers []struct {
			Server string
			Tools  int
		}
	}
	if r.failed() || json.Unmarshal([]byte(r.text()), &out) != nil {
		rt.Fatalf("%s: status of %q: %s", sc, s, r.raw)
	}
	got := map[string]bool{}
	for _, one := range out.Servers {
		got[one.Server] = true
	}
	for _, one := range w.st.reach(sc.client, sc.at) {
		if s.server != "" && s != one {
			continue
		}
		if one.label == "" && !got[one.String()] { // an account that nobody uses has no state
			rt.Fatalf("%s: status lacks %s: %s", sc, one, r.text())
		}
		delete(got, one.String())
	}
	if len(got) > 0 {
		rt.Fatalf("LEAK: %s: status has %v", sc, got)
	}
}

// login asks for a login; the servers have none to offer.
func (w *run) login(rt *rapid.T) {
	sc := w.scene(rt, "meta", "joined")
	s := w.target(rt, sc)
	w.lab.tried[account{sc.principal, s.server, s.label}] = true
	send := func(s spot, _ string) *reply {
		if sc.at.kind == "meta" {
			return w.act(rt, sc, "login", s.String(), "")
		}
		return w.ask(rt, sc, mcp.MethodToolsCall, "login", fmt.Sprintf(`"name":"login","arguments":{"server":%q}`, s))
	}
	w.lab.take()
	r := send(s, "")
	if w.gone(rt, sc, r) {
		return
	}
	// The account need not exist yet, so nobody's login can be found out by asking.
	had := w.st.logins
	w.st.logins = map[account]bool{{sc.principal, s.server, s.label}: true}
	v, hidden := w.st.may(sc.client, sc.at, theWhole, s.server, s.label, "")
	w.st.logins = had
	want := map[verdict]string{fine: "did not start", unsupported: "You may not log in to ", denied: "You may not log in to ", unknown: "No server is named "}[v]
	if !r.failed() || !strings.Contains(r.text(), want) {
		rt.Fatalf("%s: a login at %s, which is %s: %s", sc, s, v, r.raw)
	}
	w.recorded(rt, sc, hidden, s, policy.OutcomeDenied)
	if v == unknown {
		w.same(rt, sc, r, s.String(), send(spot{"zzz999", ""}, ""), "zzz999")
	}
}

const hello = `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`

// open opens a session.
func (w *run) open(rt *rapid.T) {
	if len(w.sessions) >= 6 {
		w.close(rt)
	}
	c, at := rapid.SampledFrom(modelClients).Draw(rt, "client"), rapid.SampledFrom(places).Draw(rt, "place")
	sc := scene{c, at, nil}
	w.lab.take()
	r := w.ask(rt, sc, mcp.MethodInitialize, "", hello)
	if w.gone(rt, sc, r) {
		return
	}
	if v, _ := w.entry(c, at); v != fine {
		w.refusal(rt, sc, aServer, "", r)
		return
	}
	if r.failed() || r.session == "" {
		rt.Fatalf("%s: no session: %s", sc, r.raw)
	}
	w.sessions = append(w.sessions, &session{c, at, r.session})
}

func (w *run) close(rt *rapid.T) {
	if len(w.sessions) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.sessions)-1).Draw(rt, "session")
	s := w.sessions[i]
	if v, _ := w.entry(s.client, s.at); v != fine {
		return
	}
	head := map[string]string{wire.HeaderSession: s.id, wire.HeaderVersion: mcp.V20251125}
	if r := w.lab.do(rt, w.lab.tokens[s.client.name].text, http.MethodDelete, s.at, "", head); r.status >= 300 {
		rt.Fatalf("a session cannot be closed: %d %s", r.status, r.raw)
	}
	w.sessions = slices.Delete(w.sessions, i, i+1)
	if r := w.lab.send(rt, w.lab.tokens[s.client.name].text, s.at, s, mcp.MethodToolsList, "", ""); r.status != 404 {
		rt.Fatalf("a closed session answers: %d %s", r.status, r.raw)
	}
}

// foreign uses the session of another client.
func (w *run) foreign(rt *rapid.T) {
	if len(w.sessions) == 0 {
		return
	}
	s := rapid.SampledFrom(w.sessions).Draw(rt, "session")
	c := rapid.SampledFrom(modelClients).Draw(rt, "client")
	if c.name == s.client.name {
		return
	}
	r := w.ask(rt, scene{c, s.at, s}, mcp.MethodToolsList, "", "")
	if r.status != 404 {
		rt.Fatalf("%s uses the session of %s: %d %s", c.name, s.client.name, r.status, r.raw)
	}
}
