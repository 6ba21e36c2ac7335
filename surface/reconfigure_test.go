package surface

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// Agents hear when servers come, go or change, and when their profile does; those
// who see nothing of it hear nothing.
func TestReconfigured(t *testing.T) {
	one, _ := serve(t, "one", fake.Options{Tools: []fake.Tool{simple("one", "a", ""), simple("one", "c", "")}})
	two, _ := serve(t, "two", fake.Options{Tools: []fake.Tool{simple("two", "a", "")}})
	other, _ := serve(t, "two", fake.Options{Tools: []fake.Tool{simple("two", "b", "")}})
	profiles := map[string]Profile{"p": {Servers: []string{"one"}}}
	w := start(t, []config.Server{one}, options{Options: Options{Profiles: profiles}}, nil)
	configure := func(profiles map[string]Profile, servers ...config.Server) {
		cfg := &config.Config{Usher: config.DefaultSettings()}
		for _, s := range servers {
			cfg.Servers = append(cfg.Servers, s.WithDefaults())
		}
		w.gate.Configure(cfg)
		changed := w.host.Apply(t.Context(), cfg)
		for _, name := range changed {
			w.gate.Forget(name)
		}
		w.Reconfigured(changed, profiles)
	}
	profile, err := w.Profile("p")
	if err != nil {
		t.Fatal(err)
	}
	list := func(v View) []string {
		return names(do(t, v, modernAgent, mcp.MethodToolsList, `{}`), "tools", "name")
	}
	list(w.Direct())
	all := Subscription{Tools: true, Prompts: true, Resources: true}
	direct, narrow := listen(t, w.Direct(), modernAgent, all), listen(t, profile, modernAgent, all)
	w.listening(t, 2)
	steps := []struct {
		name     string
		profiles map[string]Profile
		servers  []config.Server
		hears    *hearing
		sees     View
		want     []string
	}{
		{"a server comes", profiles, []config.Server{one, two}, direct, w.Direct(), []string{"one__a", "one__c", "two__a"}},
		{"a server changes", profiles, []config.Server{one, other}, direct, w.Direct(), []string{"one__a", "one__c", "two__b"}},
		{"a profile changes", map[string]Profile{"p": {Servers: []string{"two"}}}, []config.Server{one, other}, narrow, profile, []string{"two__b"}},
		{"a profile goes back", profiles, []config.Server{one, other}, narrow, profile, []string{"one__a", "one__c"}},
		{"a profile has fewer tools", map[string]Profile{"p": {Tools: []string{"one/c"}}}, []config.Server{one, other}, narrow, profile, []string{"one__c"}},
		{"a server goes", profiles, []config.Server{one}, direct, w.Direct(), []string{"one__a", "one__c"}},
	}
	for _, tt := range steps {
		configure(tt.profiles, tt.servers...)
		if m := tt.hears.next(); m.Method != mcp.MethodNotifyTools {
			t.Errorf("%s: %s", tt.name, m.Method)
		}
		if diff := cmp.Diff(tt.want, list(tt.sees)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if _, err := w.Profile("q"); err == nil {
		t.Error("there is no such profile")
	}
}

// A legacy server goes on to send updates of what was subscribed to before a rule
// denied it; they reach nobody.
func TestDeniedServersAreNotHeard(t *testing.T) {
	one, _ := serve(t, "one", fake.Options{Versions: []string{mcp.V20251125}})
	w := start(t, []config.Server{one}, options{}, nil)
	h := listen(t, w.view(t, modernAgent, "one"), modernAgent, Subscription{Tools: true, URIs: []string{"fake://readme"}})
	w.listening(t, 1)
	update := func() {
		w.Notified(policy.Key{Principal: local, Server: "one"}, mcp.Message{Method: mcp.MethodNotifyUpdated, Params: []byte(`{"uri":"fake://readme"}`)})
	}
	update()
	h.next()
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{one.WithDefaults()}}
	cfg.Usher.Policy.Deny = []config.Rule{{Pattern: "one"}}
	w.gate.Configure(cfg)
	w.Reconfigured(nil, nil)
	update()
	select {
	case m := <-h.heard:
		t.Errorf("a denied server is heard: %s", m.Method)
	default:
	}
}
