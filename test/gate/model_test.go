package gate

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/test/need"
)

var modelClients = []client{
	{name: "local", principal: "local"},
	{name: "eve", principal: "eve"},
	{name: "by server", principal: "local", servers: []string{"crm"}},
	{name: "by tool", principal: "local", tools: []string{"crm/read", "docs/flip"}},
	{name: "by account", principal: "local", servers: []string{"crm@work"}},
	{name: "eve by both", principal: "eve", servers: []string{"crm@home", "docs"}},
}

func placeOf(name string) place {
	server, account, _ := strings.Cut(name, "@")
	return place{path: "/servers/" + name + "/mcp", kind: "single", server: server, account: account}
}

var places = []place{
	{path: "/mcp", kind: "joined"},
	{path: "/direct/mcp", kind: "joined"},
	{path: "/meta/mcp", kind: "meta"},
	{path: "/profiles/few/mcp", kind: "joined", profile: "few"},
	{path: "/profiles/crm/mcp", kind: "joined", profile: "crm"},
	placeOf("crm"), placeOf("docs"), placeOf("hr"), placeOf("crm@work"), placeOf("crm@home"), placeOf("docs@work"),
	placeOf("crm@invented"), placeOf("nobody"),
}

// spots are all that a request may name; the last two never exist.
var spots = []spot{{"crm", ""}, {"docs", ""}, {"hr", ""}, {"crm", "work"}, {"crm", "home"}, {"docs", "work"}, {"crm", "invented"}, {"nobody", ""}}

// What configurations choose from.
var (
	denyRules = [][]string{nil, {"hr"}, {"crm/write"}, {"crm@work"}, {"docs/flip", "*/write"}, {"docs", "crm@home"}, {"crm"}}
	fewForms  = []*selection{
		nil,
		{Tools: []string{"crm/read"}},
		{Servers: []string{"docs"}, Tools: []string{"crm/*"}},
		{Servers: []string{"crm"}, Tools: []string{"crm/write", "hr/read"}},
		{Servers: []string{"crm@work"}},
	}
	serverSets = [][]string{modelServers, modelServers, {"crm", "docs"}, {"docs", "hr"}}
)

// run is one random walk.
type run struct {
	st       *state
	lab      *lab
	stale    map[account]bool // lists that usher does not know as they are
	sessions []*session
	streams  []*stream
	trace    []string             // the last operations
	said     map[string]time.Time // when a server last said that its tools have changed
	ops      map[string]int
}

// TestModel takes random walks through a gateway with several tokens of two
// principals, while rules, profiles, servers, tools, logins, tokens and sessions come
// and go, and compares every reply with a model of who may see what. It prints how to
// repeat a walk that fails, and the shortest one that does.
func TestModel(t *testing.T) {
	total, steps := 5_000, 500
	if need.Proof() {
		total, steps = 100_000, 2_000
	}
	for name, value := range map[string]int{"rapid.checks": 1, "rapid.steps": steps} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(fmt.Sprint(value)); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Value.Set(f.DefValue) }()
		}
	}
	began, ops, walks := time.Now(), map[string]int{}, 0
	for sum := 0; sum < total && !t.Failed(); walks++ {
		rapid.Check(t, func(rt *rapid.T) { walk(t, rt, ops) })
		sum = 0
		for _, n := range ops {
			sum += n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		t.Logf("%6d %s", ops[name], name)
	}
	t.Logf("%d walks in %s", walks, time.Since(began).Round(time.Millisecond))
}

func walk(t *testing.T, rt *rapid.T, ops map[string]int) {
	w := &run{ops: ops, stale: map[account]bool{}, said: map[string]time.Time{}, st: &state{
		servers: map[string]bool{}, profiles: map[string]selection{"crm": {Servers: []string{"crm"}}, "few": *fewForms[1]},
		logins: map[account]bool{modelLogins[0]: true, modelLogins[1]: true}, version: map[string]int{}, pins: map[account]int{},
	}}
	for _, name := range modelServers {
		w.st.servers[name] = true
		for _, principal := range []string{"local", "eve"} {
			w.stale[account{principal, name, ""}] = true
		}
	}
	for a := range w.st.logins {
		w.stale[a] = true
	}
	w.lab = newLab(rt, w.st, modelClients)
	w.look(rt)
	rt.Cleanup(func() {
		for _, s := range w.streams {
			s.close()
		}
		if rt.Failed() && ops["failed"] == 0 { // what depends on the time may not fail again
			t.Logf("the first walk that failed ended with:\n%s\n%+v", strings.Join(w.trace, "\n"), *w.st)
			ops["failed"]++
		}
	})
	rt.Repeat(map[string]func(*rapid.T){"op": w.step})
}

// step does one operation.
func (w *run) step(rt *rapid.T) {
	rare := map[string]func(*rapid.T){
		"configure": w.configure, "change a tool": w.changeTool, "accept": w.accept, "revoke": w.revoke, "log in or out": w.account,
		"open": w.open, "close": w.close, "foreign session": w.foreign, "listen": w.listen, "hang up": w.hangUp, "touch": w.touch, "login": w.login,
		"revoked token": w.revoked,
	}
	often := map[string]func(*rapid.T){
		"list": w.list, "call": w.call, "prompt": w.prompt, "read": w.read, "complete": w.complete, "subscribe": w.subscribe,
		"search": w.search, "describe": w.describe, "list_tools": w.listTools, "list_servers": w.listServers, "status": w.status,
	}
	ops := often
	if rapid.IntRange(0, 9).Draw(rt, "rare") == 9 {
		ops = rare
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(ops))).Draw(rt, "what")
	if name == "log in or out" && rapid.IntRange(0, 3).Draw(rt, "seldom") != 3 { // it takes up to a second
		name = "configure"
	}
	w.note("%s", name)
	ops[name](rt)
	w.ops[name]++
	for _, s := range w.streams {
		s.check(rt, w.st)
	}
}

// note keeps the last operations.
func (w *run) note(format string, args ...any) {
	w.trace = append(w.trace[max(0, len(w.trace)-60):], time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// scene is who asks, where, and in which session if any.
type scene struct {
	client
	at place
	in *session
}

func (sc scene) String() string {
	form := "stateless"
	if sc.in != nil {
		form = "session"
	}
	return fmt.Sprintf("%s at %s (%s)", sc.name, sc.at.path, form)
}

func (w *run) scene(rt *rapid.T, kinds ...string) scene {
	among := slices.DeleteFunc(slices.Clone(w.sessions), func(s *session) bool { return len(kinds) > 0 && !slices.Contains(kinds, s.at.kind) })
	if len(among) > 0 && rapid.Bool().Draw(rt, "session") {
		s := rapid.SampledFrom(among).Draw(rt, "which")
		return scene{s.client, s.at, s}
	}
	here := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return len(kinds) > 0 && !slices.Contains(kinds, p.kind) })
	return scene{rapid.SampledFrom(modelClients).Draw(rt, "client"), rapid.SampledFrom(here).Draw(rt, "place"), nil}
}

// ask sends a request; whatever the reply is, it holds nothing that it must not.
func (w *run) ask(rt *rapid.T, sc scene, method, name, params string) *reply {
	r := w.lab.send(rt, w.lab.tokens[sc.name].text, sc.at, sc.in, method, name, params)
	w.note("  %s: %s {%s}: %d %.150s", sc, method, params, r.status, r.text())
	for _, text := range w.st.secrets(sc.client, sc.at) {
		if strings.Contains(r.raw, text) {
			rt.Fatalf("LEAK: %s: %s {%s} shows %s:\n%.800s", sc, method, params, text, r.raw)
		}
	}
	w.suggestions(rt, sc, r)
	return r
}

// gone reports whether a place does not exist for a client, and whether that hides
// something; then the reply must be that of a place that never was.
func (w *run) gone(rt *rapid.T, sc scene, r *reply) bool {
	v, hidden := w.entry(sc.client, sc.at)
	if v != unknown {
		if r.status == 404 && r.Error == nil {
			rt.Fatalf("%s: %s is not found: %s", sc, sc.at.path, r.text())
		}
		return false
	}
	own := strings.Split(sc.at.path, "/")[2]
	never := label("zzz999", sc.at.account)
	twin := place{path: strings.Replace(sc.at.path, own, never, 1)}
	w.same(rt, sc, r, own, w.lab.send(rt, w.lab.tokens[sc.name].text, twin, nil, mcp.MethodPing, "", ""), never)
	w.recorded(rt, sc, hidden, spot{sc.at.server, sc.at.account}, policy.OutcomeDenied)
	return true
}

func (w *run) entry(c client, p place) (verdict, bool) {
	if _, there := w.st.profiles[p.profile]; p.profile != "" && !there {
		return unknown, false
	}
	if p.kind != "single" {
		return fine, false
	}
	return w.st.may(c, p, aServer, p.server, p.account, "")
}

// recorded wants a record of the outcome for an account, if it must be there.
func (w *run) recorded(rt *rapid.T, sc scene, must bool, s spot, outcomes ...string) {
	all := w.lab.take()
	if !must {
		return
	}
	for _, f := range all {
		if slices.Contains(outcomes, f.Outcome) && f.Key.Server == s.server && f.Key.Account == s.label && f.Key.Principal == sc.principal &&
			f.Caller.Credential == "token:"+w.lab.tokens[sc.name].id {
			return
		}
	}
	rt.Fatalf("%s: no record of %v at %s among %+v", sc, outcomes, s, all)
}

// look has usher read the lists that it does not know as they are, where it may.
func (w *run) look(rt *rapid.T) {
	stale := slices.SortedFunc(maps.Keys(w.stale), func(a, b account) int {
		return strings.Compare(a.principal+" "+a.server+" "+a.label, b.principal+" "+b.server+" "+b.label)
	})
	for _, a := range stale { // those without a label come first: others start from their pins
		if v, _ := w.st.may(client{principal: a.principal}, place{}, aServer, a.server, a.label, ""); v != fine {
			continue
		}
		w.lab.look(rt, a, w.st.version[a.server])
		delete(w.stale, a)
		if _, known := w.st.pins[a]; !known {
			w.st.pins[a] = w.st.pins[account{a.principal, a.server, ""}]
		}
	}
}

// configure changes rules, profiles or servers by the configuration's file.
func (w *run) configure(rt *rapid.T) {
	switch rapid.SampledFrom([]string{"deny", "profile", "servers"}).Draw(rt, "part") {
	case "deny":
		w.st.deny = rapid.SampledFrom(denyRules).Draw(rt, "deny")
	case "profile":
		delete(w.st.profiles, "few")
		if few := rapid.SampledFrom(fewForms).Draw(rt, "few"); few != nil {
			w.st.profiles["few"] = *few
		}
	default:
		next := map[string]bool{}
		for _, name := range rapid.SampledFrom(serverSets).Draw(rt, "servers") {
			next[name] = true
			for a := range w.st.pins {
				if a.server == name && !w.st.servers[name] && (a.label == "" || w.st.logins[a]) {
					w.stale[a] = true
				}
			}
		}
		w.st.servers = next
	}
	w.note("  %+v", *w.st)
	w.lab.reread(rt, w.st)
	w.changed()
	w.look(rt)
}

// changeTool has a server change one of its tools and say so.
func (w *run) changeTool(rt *rapid.T) {
	server := rapid.SampledFrom(modelServers).Draw(rt, "server")
	w.st.version[server] = (w.st.version[server] + 1) % 3
	for a := range w.st.pins {
		if a.server == server && (a.label == "" || w.st.logins[a]) {
			w.stale[a] = true
		}
	}
	w.note("  %s: %+v", server, *w.st)
	w.changed(server)
	w.said[server] = time.Now()
	w.lab.servers[server].SetTools(toolsOf(server, w.st.version[server]))
	w.look(rt)
}

// accept has a person approve the tools of an account as they are.
func (w *run) accept(rt *rapid.T) {
	s := rapid.SampledFrom(spots[:6]).Draw(rt, "account")
	a := account{rapid.SampledFrom([]string{"local", "eve"}).Draw(rt, "principal"), s.server, s.label}
	if v, _ := w.st.may(client{principal: a.principal}, place{}, aTool, a.server, a.label, "flip"); v != blocked || w.stale[a] {
		return
	}
	_, err := w.lab.host.Gate().Pins(a.principal).Accept(rt.Context(), s.String(), "flip", "")
	must(rt, err)
	w.st.pins[a] = w.st.version[a.server]
	w.changed()
	_, err = w.lab.host.Gate().Call(rt.Context(), policy.Call{ // it is noticed at the next call
		Caller: policy.As(a.principal), Key: host.Key{Server: a.server, Account: a.label}, Tool: "flip",
	})
	must(rt, err)
}

// account stores a login or removes it.
func (w *run) account(rt *rapid.T) {
	a := rapid.SampledFrom(modelLogins).Draw(rt, "login")
	if !w.st.servers[a.server] {
		return
	}
	defer w.changed()
	if w.st.logins[a] {
		w.lab.logout(rt, a)
		delete(w.st.logins, a)
		delete(w.st.pins, a)
		delete(w.stale, a)
		return
	}
	w.lab.login(rt, a)
	used := time.After(1100 * time.Millisecond) // that there is no login is believed for a second
	k := host.Key{Server: a.server, Account: a.label}
	// A login of another process is found when its account is named, within a second.
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(20 * time.Millisecond) {
		err := w.lab.host.Gate().Allowed(rt.Context(), policy.As(a.principal), k, "")
		if err == nil || errors.Is(err, policy.ErrDenied) {
			break
		}
		if time.Now().After(deadline) {
			rt.Fatal(err)
		}
	}
	<-used
	w.st.logins[a], w.stale[a] = true, true
	w.look(rt)
}

// revoke ends a token and all that was opened with it, and mints another.
func (w *run) revoke(rt *rapid.T) {
	c := rapid.SampledFrom(modelClients).Draw(rt, "client")
	old := w.lab.tokens[c.name]
	must(rt, w.lab.minter.Revoke(rt.Context(), old.id))
	w.lab.dead = append(w.lab.dead, old.text)
	w.lab.mint(rt, c)
	w.sessions = slices.DeleteFunc(w.sessions, func(s *session) bool {
		if s.client.name != c.name {
			return false
		}
		if r := w.lab.send(rt, w.lab.tokens[c.name].text, s.at, s, mcp.MethodToolsList, "", ""); r.status != 404 {
			rt.Fatalf("the session of a revoked token is there for another: %d %s", r.status, r.raw)
		}
		return true
	})
	w.streams = slices.DeleteFunc(w.streams, func(s *stream) bool {
		if s.client.name != c.name {
			return false
		}
		s.ends(rt)
		return true
	})
}

func (w *run) revoked(rt *rapid.T) {
	if len(w.lab.dead) == 0 {
		return
	}
	token := rapid.SampledFrom(w.lab.dead).Draw(rt, "token")
	at := rapid.SampledFrom(places).Draw(rt, "place")
	if r := w.lab.send(rt, token, at, nil, mcp.MethodToolsList, "", ""); r.status != 401 || strings.Contains(r.raw, "CANARY") {
		rt.Fatalf("a revoked token at %s: %d %s", at.path, r.status, r.raw)
	}
}
