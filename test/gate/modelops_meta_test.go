package gate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/policy"
)

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
