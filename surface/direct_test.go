package surface

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
)

// twoServers has a server of each era, with a prompt and a resource in common.
func twoServers(t testing.TB, opt options, edit func(*config.Config, *host.Options)) *rig {
	alpha, _ := serve(t, "alpha", fake.Options{
		Versions: modernOnly, ListTTL: 60000, CacheScope: "public",
		Tools: []fake.Tool{simple("alpha", "zeta", "Last"), simple("alpha", "add", "First"), simple("alpha", "odd name", "Blank")},
	})
	beta, _ := serve(t, "beta", fake.Options{
		Versions: legacyOnly, Tools: []fake.Tool{simple("beta", "add", "Same name")},
		Resources: []fake.Resource{
			{Def: []byte(`{"uri":"fake://readme","name":"readme"}`), Result: []byte(`{"contents":[{"uri":"fake://readme","text":"beta"}]}`)},
			{Def: []byte(`{"uri":"beta://own","name":"own"}`), Result: []byte(`{"contents":[{"uri":"beta://own","text":"own"}]}`)},
		},
	})
	return start(t, []config.Server{beta, alpha}, opt, edit)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if os.Getenv("USHER_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), strings.TrimSpace(got)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

func TestDirectLists(t *testing.T) {
	w := twoServers(t, options{Logins: &logins{}}, nil)
	for _, era := range []struct {
		name  string
		agent Agent
	}{{"older", legacyAgent}, {"modern", modernAgent}} {
		var all strings.Builder
		for _, method := range []string{mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList} {
			list := do(t, w.Direct(), era.agent, method, `{}`)
			fmt.Fprintf(&all, "%s\n%s\n", method, strings.ReplaceAll(list, `},{"`, "},\n{\""))
		}
		golden(t, "direct-"+era.name+".txt", all.String())
	}
}

// TestDirectReaches wants every name that is listed to lead to its server.
func TestDirectReaches(t *testing.T) {
	w := twoServers(t, options{}, nil)
	d := w.Direct()
	for _, tt := range []struct{ name, method, params, want string }{
		{"tool", mcp.MethodToolsCall, `{"name":"alpha__add","arguments":{}}`, `alpha/add`},
		{"same tool of the other", mcp.MethodToolsCall, `{"name":"beta__add"}`, `beta/add`},
		{"marked name", mcp.MethodToolsCall, `{"name":"` + naming.Scheme{Separator: "__"}.Shown("alpha", "", "odd name") + `"}`, `alpha/odd name`},
		{"prompt", mcp.MethodPromptsGet, `{"name":"alpha__greet"}`, `A greeting`},
		{"resource of one", mcp.MethodResourcesRead, `{"uri":"beta://own"}`, `"uri":"beta://own","text":"own"`},
		{"resource of two", mcp.MethodResourcesRead, `{"uri":"usher://beta/fake://readme"}`, `"uri":"usher://beta/fake://readme","text":"beta"`},
		{"the other one's", mcp.MethodResourcesRead, `{"uri":"usher://alpha/fake://readme"}`, `"uri":"usher://alpha/fake://readme","mimeType":"text/plain","text":"Read me."`},
		{"completion of a prompt", mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"beta__greet"},"argument":{"name":"who","value":""}}`, `"alpha","beta"`},
		{"completion of a template", mcp.MethodComplete, `{"ref":{"type":"ref/resource","uri":"usher://alpha/fake://item/{id}"},"argument":{"name":"id","value":""}}`, `"alpha","beta"`},
		{"ping", mcp.MethodPing, ``, `{`},
	} {
		for _, agent := range []Agent{modernAgent, legacyAgent} {
			got := do(t, d, agent, tt.method, tt.params)
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s: %s", tt.name, got)
			}
			if agent.Version == mcp.V20260728 && !strings.Contains(got, `"resultType"`) {
				t.Errorf("%s: a modern agent gets no resultType: %s", tt.name, got)
			}
		}
	}
}

func TestDirectRefuses(t *testing.T) {
	w := twoServers(t, options{}, func(c *config.Config, _ *host.Options) {
		c.Servers[1].Tools.Deny = []string{"zeta"}
	})
	for _, tt := range []struct {
		name, method, params string
		code                 int64
		want                 string
	}{
		{"unknown tool", mcp.MethodToolsCall, `{"name":"alpha__ad"}`, mcp.CodeInvalidParams, "did you mean alpha__add"},
		{"denied tool", mcp.MethodToolsCall, `{"name":"alpha__zeta"}`, mcp.CodeInvalidParams, "unknown tool"},
		{"no login tool without logins", mcp.MethodToolsCall, `{"name":"login"}`, mcp.CodeInvalidParams, "unknown tool"},
		{"nor a status of them", mcp.MethodToolsCall, `{"name":"status"}`, mcp.CodeInvalidParams, "unknown tool"},
		{"unknown prompt", mcp.MethodPromptsGet, `{"name":"alpha__gret"}`, mcp.CodeInvalidParams, "did you mean alpha__greet"},
		{"ambiguous address", mcp.MethodResourcesRead, `{"uri":"fake://readme"}`, mcp.CodeInvalidParams, "usher://alpha/fake://readme or usher://beta/fake://readme"},
		{"unknown address", mcp.MethodResourcesRead, `{"uri":"other://x"}`, mcp.CodeInvalidParams, "resource not found"},
		{"cursor", mcp.MethodToolsList, `{"cursor":"x"}`, mcp.CodeInvalidParams, "cursor"},
		{"method", "tasks/get", `{}`, mcp.CodeMethodNotFound, "tasks/get"},
		{"adding servers", "servers/add", `{}`, mcp.CodeMethodNotFound, "servers/add"},
	} {
		_, err := try(t, w.Direct(), modernAgent, tt.method, tt.params)
		var werr *mcp.Error
		if !errors.As(err, &werr) || werr.Code != tt.code || !strings.Contains(werr.Message, tt.want) {
			t.Errorf("%s: %v, want code %d and %q", tt.name, err, tt.code, tt.want)
		}
	}
}

// TestDirectIsStable wants the same bytes from two processes that know the same,
// whatever the order of configuration and of the servers' own lists.
func TestDirectIsStable(t *testing.T) {
	catalogs := map[host.Key]host.Catalog{}
	var servers []config.Server
	for i := range 12 {
		name := fmt.Sprintf("server-%02d", i)
		servers = append(servers, config.Server{Name: name, Transport: config.TransportHTTP, URL: "http://127.0.0.1:1/mcp"})
		catalogs[host.Key{Principal: local, Server: name}] = bigCatalog(20, i)
	}
	var first [3]string
	for round := range 4 {
		shuffled := map[host.Key]host.Catalog{}
		for k, c := range catalogs {
			c.Tools = slices.Clone(c.Tools)
			rand.Shuffle(len(c.Tools), func(i, j int) { c.Tools[i], c.Tools[j] = c.Tools[j], c.Tools[i] })
			shuffled[k] = c
		}
		rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
		w := start(t, servers, options{}, func(_ *config.Config, o *host.Options) { o.Memory = &memory{tools: shuffled} })
		got := [3]string{
			do(t, w.Direct(), legacyAgent, mcp.MethodToolsList, ``), do(t, w.Direct(), modernAgent, mcp.MethodToolsList, ``),
			do(t, w.Meta(), modernAgent, mcp.MethodToolsList, ``),
		}
		if round == 0 {
			first = got
		}
		if got != first {
			t.Fatalf("round %d differs", round)
		}
	}
	if n := len(names(first[0], "tools", "name")); n != 240 {
		t.Errorf("%d tools", n)
	}
}

// bigCatalog is what a server with n tools offers.
func bigCatalog(n, seed int) host.Catalog {
	c := host.Catalog{Version: mcp.V20260728, Capabilities: []byte(`{"tools":{}}`)}
	for _, d := range many(n) {
		c.Tools = append(c.Tools, jsonx.Set(d.Definition, "title", fmt.Appendf(nil, `"seed %d"`, seed)))
	}
	return c
}

// TestListsSurviveServers wants lists to come with what is known, whatever happens
// to a server.
func TestListsSurviveServers(t *testing.T) {
	good, _ := serve(t, "good", fake.Options{Tools: []fake.Tool{simple("good", "t", "")}})
	hung, _ := serve(t, "hung", fake.Options{Switches: []string{"silent"}})
	gone := config.Server{Name: "gone", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1/mcp"}
	dying, srv := serve(t, "dying", fake.Options{Tools: []fake.Tool{simple("dying", "t", "")}})
	w := start(t, []config.Server{good, hung, gone, dying}, options{}, func(c *config.Config, _ *host.Options) {
		c.Servers[1].Timeouts.Connect = 500 * time.Millisecond // the others may take their time
	})
	want := []string{"dying__t", "good__t"}
	list := func(when string) {
		t.Helper()
		if diff := cmp.Diff(want, names(do(t, w.Direct(), modernAgent, mcp.MethodToolsList, ``), "tools", "name")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", when, diff)
		}
	}
	list("at first")
	srv.Set("http-status=500")
	w.host.Reload(t.Context(), "dying")
	list("when one has died")
	if got := do(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"good__t"}`); !strings.Contains(got, "good/t") {
		t.Errorf("the others work on: %s", got)
	}
	if _, err := try(t, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"dying__t"}`); err == nil {
		t.Error("a dead server answers")
	}
}

func TestScopeOfAnAgent(t *testing.T) {
	w := twoServers(t, options{Options: Options{Profiles: map[string]Profile{"p": {Servers: []string{"beta"}, Tools: []string{"alpha/z*"}}}}}, nil)
	scoped := Agent{Version: mcp.V20260728, Tools: []string{"alpha/add"}}
	profile, err := w.Profile("p")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		view  View
		agent Agent
		want  []string
	}{
		{"all", w.Direct(), modernAgent, []string{"alpha__add", naming.Scheme{Separator: "__"}.Shown("alpha", "", "odd name"), "alpha__zeta", "beta__add"}},
		{"tools", w.Direct(), scoped, []string{"alpha__add"}},
		{"servers", w.Direct(), Agent{Version: mcp.V20260728, Servers: []string{"b*"}}, []string{"beta__add"}},
		{"profile", profile, modernAgent, []string{"alpha__zeta", "beta__add"}},
		{"profile and scope", profile, Agent{Version: mcp.V20260728, Servers: []string{"alpha"}}, []string{"alpha__zeta"}},
	} {
		got := do(t, tt.view, tt.agent, mcp.MethodToolsList, ``)
		if diff := cmp.Diff(tt.want, names(got, "tools", "name")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
		if len(tt.agent.Servers)+len(tt.agent.Tools) > 0 && !strings.Contains(got, `"cacheScope":"private"`) {
			t.Errorf("%s: what one agent may see is public: %s", tt.name, got)
		}
	}
	if _, err := try(t, w.Direct(), scoped, mcp.MethodToolsCall, `{"name":"beta__add"}`); err == nil {
		t.Error("a tool out of scope runs")
	}
	if _, err := try(t, w.Direct(), scoped, mcp.MethodResourcesRead, `{"uri":"beta://own"}`); err == nil {
		t.Error("a resource out of scope is read")
	}
	single := w.view(t, modernAgent, "alpha")
	if _, err := try(t, single, scoped, mcp.MethodToolsCall, `{"name":"zeta"}`); !isUnknownTool(err) {
		t.Errorf("a tool out of scope: %v", err)
	}
	if _, err := w.Profile("q"); !errors.Is(err, ErrUnknownView) {
		t.Errorf("unknown profile: %v", err)
	}
}

// isUnknownTool: what is out of scope reads like a name that nobody uses.
func isUnknownTool(err error) bool {
	var werr *mcp.Error
	return errors.As(err, &werr) && werr.Code == mcp.CodeInvalidParams && strings.Contains(werr.Message, "unknown tool")
}

// TestFreshness wants the list of many to be kept as long as its shortest part, for
// everybody only when all parts are.
func TestFreshness(t *testing.T) {
	public, _ := serve(t, "public", fake.Options{Versions: modernOnly, ListTTL: 60000, CacheScope: "public", Tools: []fake.Tool{simple("p", "t", "")}})
	short, _ := serve(t, "short", fake.Options{Versions: modernOnly, ListTTL: 30000, CacheScope: "public", Tools: []fake.Tool{simple("s", "t", "")}})
	private, _ := serve(t, "private", fake.Options{Versions: modernOnly, ListTTL: 60000, Tools: []fake.Tool{simple("p", "t", "")}})
	for _, tt := range []struct {
		name     string
		servers  []config.Server
		atMost   int
		scope    string
		positive bool
	}{
		{"one", []config.Server{public}, 60000, "public", true},
		{"the shorter", []config.Server{public, short}, 30000, "public", true},
		{"one is private", []config.Server{public, private}, 60000, "private", true},
		{"none", nil, 0, "private", false},
	} {
		w := start(t, tt.servers, options{}, nil)
		got := do(t, w.Direct(), modernAgent, mcp.MethodToolsList, ``)
		raw, _ := jsonx.Get([]byte(got), "ttlMs")
		var ttl int
		if _, err := fmt.Sscan(string(raw), &ttl); err != nil || ttl > tt.atMost || (ttl > 0) != tt.positive {
			t.Errorf("%s: ttlMs %s", tt.name, raw)
		}
		if s := jsonx.GetText([]byte(got), "cacheScope"); s != tt.scope {
			t.Errorf("%s: scope %s", tt.name, s)
		}
	}
}

// logins is Logins for tests.
type logins struct{ begun []string }

func (l *logins) Begin(_ context.Context, k policy.Key) (Login, error) {
	target := naming.Label(k.Server, k.Account)
	l.begun = append(l.begun, target)
	one := Login{Server: target, Flow: "browser", State: "pending", Handle: "h-1", URL: "https://example.com/authorize"}
	switch {
	case target == "beta":
		return Login{}, errors.New("beta does not speak OAuth")
	case k.Account == "paste":
		one.Flow, one.URL = "paste", one.URL+"?a=(b)"
	case k.Account == "device":
		one.Flow, one.URL, one.Code = "device", "https://example.com/device", "WDJB"
	}
	return one, nil
}

func (l *logins) BeginAll(ctx context.Context, _ string, keys []policy.Key) ([]Login, error) {
	var out []Login
	for _, k := range keys {
		if k.Server == "gone" {
			out = append(out, Login{Server: k.Server, State: "failed", Reason: "cannot be resolved"})
			continue
		}
		one, _ := l.Begin(ctx, k)
		out = append(out, one)
	}
	return out, nil
}

func (l *logins) Complete(_ context.Context, _ string, may func(server, account string) bool, _ string) (Login, error) {
	if !may("alpha", "") {
		return Login{}, errors.New("no such login")
	}
	return Login{Server: "alpha", State: "done", Handle: "h-1"}, nil
}

func (l *logins) Status(context.Context, string) ([]Login, error) {
	return []Login{
		{Server: "alpha", State: "pending", Flow: "browser", Handle: "h-1"},
		{Server: "hidden", State: "done"},
		{Server: "alpha@new", State: "failed", Reason: "access_denied"},
	}, nil
}

// Lists do not wait for a server that is slow; what it has can be used all the same by
// whoever knows its name.
func TestNamesOfASlowServer(t *testing.T) {
	quick, _ := serve(t, "quick", fake.Options{})
	slow, _ := serve(t, "slow", fake.Options{Switches: []string{"latency=300"}})
	for method, params := range map[string]string{
		mcp.MethodToolsCall:  `{"name":"slow__echo","arguments":{}}`,
		mcp.MethodPromptsGet: `{"name":"slow__greet","arguments":{"who":"x"}}`,
	} {
		w := start(t, []config.Server{quick, slow}, options{Options: Options{Quiet: time.Millisecond}}, nil)
		if _, err := w.Direct().Do(t.Context(), Agent{Version: mcp.Latest}, mcp.Request{Method: method, Params: []byte(params)}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}
