package gate

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

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
