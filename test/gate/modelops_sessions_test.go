package gate

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

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
