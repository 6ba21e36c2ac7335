package gate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

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

// usePrompt is for what names a prompt.
// address draws a way to name a resource.
// subscribe subscribes in a session, and lets go again.
// resource wants what a server has at an address.
// login asks for a login; the servers have none to offer.
const hello = `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`

// open opens a session.
// foreign uses the session of another client.
