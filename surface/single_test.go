package surface

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface/internal/naming"
)

func single1(t testing.TB, w *rig, name string) View {
	t.Helper()
	v, err := w.Server(t.Context(), modernAgent, name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestFidelity wants definitions, arguments and results of the corpus to cross the
// views as they are, in all pairings of eras.
func TestFidelity(t *testing.T) {
	for _, versions := range [][]string{modernOnly, legacyOnly} {
		srv, _ := serve(t, "s", fake.Options{Versions: versions, Tools: append(fake.DefaultTools(), fake.CorpusTools()...)})
		w := start(t, []config.Server{srv}, options{}, nil)
		for _, agent := range []Agent{modernAgent, legacyAgent} {
			t.Run(versions[0]+" to "+agent.Version, func(t *testing.T) {
				compareCorpus(t, single1(t, w, "s"), agent, func(name string) string { return name })
				compareCorpus(t, w.Direct(), agent, func(name string) string { return naming.Scheme{Separator: "__"}.Shown("s", "", name) })
				compareMeta(t, w.Meta(), agent)
			})
		}
	}
}

// sameResult wants a result as the server sent it; one without resultType may have
// got what the modern era demands at its end.
func sameResult(t *testing.T, name, want, got string) {
	t.Helper()
	if !strings.HasPrefix(got, strings.TrimSuffix(want, "}")) {
		t.Errorf("%s: result (-want +got)\n%s", name, cmp.Diff(want, got))
	}
	if _, has := jsonx.Get([]byte(want), "resultType"); has && want != got {
		t.Errorf("%s: result (-want +got)\n%s", name, cmp.Diff(want, got))
	}
}

func compareCorpus(t *testing.T, v View, agent Agent, shown func(string) string) {
	t.Helper()
	tools, _ := jsonx.Get([]byte(do(t, v, agent, mcp.MethodToolsList, `{}`)), "tools")
	defs := map[string]string{}
	for e := jsonx.Array(tools); e.Next(); {
		defs[jsonx.GetText(e.Value, "name")] = string(e.Value)
	}
	for _, s := range fake.Corpus() {
		want := string(s.Tool)
		if name := shown(s.ToolName()); name != s.ToolName() {
			want = string(jsonx.Set(s.Tool, "name", jsonx.Quote(name)))
		}
		if diff := cmp.Diff(want, defs[shown(s.ToolName())]); diff != "" {
			t.Errorf("%s: definition (-want +got)\n%s", s.Name, diff)
		}
		sameResult(t, s.Name, string(s.Result), do(t, v, agent, mcp.MethodToolsCall, `{"name":"`+shown(s.ToolName())+`","arguments":{}}`))
	}
	const args = `{ "n":9007199254740993 , "s":"\u00e9é","z":[1.0,-0,1E+2],"a":{}}`
	got, _ := jsonx.Get([]byte(do(t, v, agent, mcp.MethodToolsCall, `{"name":"`+shown("echo")+`","arguments":`+args+`}`)), "structuredContent")
	if diff := cmp.Diff(args, string(got)); diff != "" {
		t.Errorf("arguments (-want +got)\n%s", diff)
	}
}

func compareMeta(t *testing.T, v View, agent Agent) {
	t.Helper()
	for _, s := range fake.Corpus() {
		call := func(action, more string) string {
			return do(t, v, agent, mcp.MethodToolsCall, fmt.Sprintf(`{"name":"mcp","arguments":{"action":%q,"server":"s","tool":%q%s}}`, action, s.ToolName(), more))
		}
		if def, _ := text(call("describe_tool", "")); def != string(s.Tool) {
			t.Errorf("%s: definition (-want +got)\n%s", s.Name, cmp.Diff(string(s.Tool), def))
		}
		sameResult(t, s.Name, string(s.Result), call("call", `,"arguments":{}`))
	}
}

// TestPagesPass wants paging, ttlMs and cacheScope to be the server's own where
// nothing is left out.
func TestPagesPass(t *testing.T) {
	srv, _ := serve(t, "s", fake.Options{
		Versions: modernOnly, PageSize: 2, ListTTL: 5000, CacheScope: "public",
		Tools: []fake.Tool{simple("s", "c", ""), simple("s", "a", ""), simple("s", "b", "")},
	})
	w := start(t, []config.Server{srv}, options{}, nil)
	v := single1(t, w, "s")
	const meta = `"ttlMs":5000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1.0.0"}}}`
	const def = `{"name":"%s","description":"","inputSchema":{"type":"object"}}`
	for _, tt := range []struct{ params, want string }{
		{`{}`, `{"tools":[` + fmt.Sprintf(def, "c") + `,` + fmt.Sprintf(def, "a") + `],"nextCursor":"after-2",` + meta},
		{`{"cursor":"after-2"}`, `{"tools":[` + fmt.Sprintf(def, "b") + `],` + meta},
	} {
		for range 2 { // the second comes from the cache
			if diff := cmp.Diff(tt.want, do(t, v, modernAgent, mcp.MethodToolsList, tt.params)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tt.params, diff)
			}
		}
	}
	if _, err := try(t, v, modernAgent, mcp.MethodToolsList, `{"cursor":"x"}`); err == nil {
		t.Error("a wrong cursor is answered")
	}
}

func TestPagesFilter(t *testing.T) {
	srv, _ := serve(t, "s", fake.Options{
		Versions: modernOnly, ListTTL: 5000, CacheScope: "public", Switches: []string{"invalid-header-tools"},
		Tools: []fake.Tool{simple("s", "a", ""), simple("s", "b", ""), simple("s", "c", "")},
	})
	w := start(t, []config.Server{srv}, options{}, func(c *config.Config, _ *host.Options) {
		c.Servers[0].Tools = config.ToolRules{Deny: []string{"b"}, Rename: map[string]string{"c": "sea"}}
	})
	v := single1(t, w, "s")
	got := do(t, v, modernAgent, mcp.MethodToolsList, `{}`)
	if diff := cmp.Diff([]string{"a", "sea"}, names(got, "tools", "name")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !strings.Contains(got, `],"ttlMs":5000,"cacheScope":"public","resultType":"complete"`) {
		t.Errorf("the rest of the page: %s", got)
	}
	if got := do(t, v, modernAgent, mcp.MethodToolsCall, `{"name":"sea"}`); !strings.Contains(got, "s/c") {
		t.Errorf("renamed: %s", got)
	}
	scoped := modernAgent
	scoped.Tools = []string{"s/a"}
	got = do(t, v, scoped, mcp.MethodToolsList, `{}`)
	if diff := cmp.Diff([]string{"a"}, names(got, "tools", "name")); diff != "" || !strings.Contains(got, `"cacheScope":"private"`) {
		t.Errorf("scoped: %s", got)
	}
}

func TestSingleInfo(t *testing.T) {
	srv, _ := serve(t, "s", fake.Options{Name: "its-own-name", Instructions: "Be kind.", Versions: legacyOnly})
	gone := config.Server{Name: "gone", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1/mcp"}
	off := srv
	off.Name, off.Disabled = "off", true
	w := start(t, []config.Server{srv, gone, off}, options{}, nil)
	info, err := single1(t, w, "s").Info(t.Context(), legacyAgent)
	if err != nil || !strings.Contains(string(info.Server), "its-own-name") || info.Instructions != "Be kind." || info.Version != mcp.V20251125 {
		t.Errorf("%+v, %v", info, err)
	}
	info, err = single1(t, w, "gone").Info(t.Context(), legacyAgent)
	if err != nil || !strings.Contains(string(info.Server), `"gone"`) || info.Capabilities == nil {
		t.Errorf("a server that is down: %s %v", info.Server, err)
	}
	if _, err := single1(t, w, "off").Info(t.Context(), legacyAgent); err == nil {
		t.Error("a server that is off is described")
	}
	if _, err := w.Server(t.Context(), modernAgent, "nobody"); !errors.Is(err, ErrUnknownView) {
		t.Errorf("unknown: %v", err)
	}
	for _, v := range []View{w.Meta(), w.Direct()} {
		info, err := v.Info(t.Context(), modernAgent)
		if err != nil || jsonx.Valid(info.Server) != nil || jsonx.Valid(info.Capabilities) != nil {
			t.Errorf("%+v, %v", info, err)
		}
	}
}

// TestQuestionsReachTheirAgent lets two sessions of the older era, and a modern
// agent twice at once, call a server that asks: each question reaches who caused it.
func TestQuestionsReachTheirAgent(t *testing.T) {
	srv, fk := serve(t, "s", fake.Options{Versions: legacyOnly})
	w := start(t, []config.Server{srv}, options{}, nil)
	v := single1(t, w, "s")
	var wg sync.WaitGroup
	for i := range 6 {
		agent := Agent{Version: mcp.V20251125, Lane: fmt.Sprint("lane-", i), Capabilities: []byte(`{"elicitation":{}}`)}
		if i >= 3 {
			agent.Version, agent.Lane = mcp.V20260728, ""
		}
		wg.Go(func() {
			question := fmt.Sprint("question ", i)
			asked := ""
			got, err := v.Do(t.Context(), agent, mcp.Request{
				Method: mcp.MethodToolsCall, Params: fmt.Appendf(nil, `{"name":"ask","arguments":{"message":%q}}`, question),
				OnRequest: func(_ context.Context, method string, params []byte) ([]byte, *mcp.Error) {
					asked = jsonx.GetText(params, "message")
					return fmt.Appendf(nil, `{"action":"accept","content":{"answer":"%d"}}`, i), nil
				},
			})
			if err != nil || asked != question || !strings.Contains(string(got), fmt.Sprint(i)) {
				t.Errorf("%s was asked %q: %s %v", question, asked, got, err)
			}
		})
	}
	wg.Wait()
	v.Close(Agent{Version: mcp.V20251125, Lane: "lane-0"})
	if n := fk.Ledger().Count(mcp.MethodInitialize); n < 4 {
		t.Errorf("%d sessions for agents that must not share one", n)
	}
}

// TestAgentsShareConnections wants one connection for all who need none of their
// own, and for everybody at a modern server.
func TestAgentsShareConnections(t *testing.T) {
	old, oldFake := serve(t, "old", fake.Options{Versions: legacyOnly})
	young, _ := serve(t, "young", fake.Options{Versions: modernOnly})
	w := start(t, []config.Server{old, young}, options{}, nil)
	for i := range 4 {
		agent := Agent{Version: mcp.V20251125, Lane: fmt.Sprint("lane-", i)}
		do(t, single1(t, w, "old"), agent, mcp.MethodToolsCall, `{"name":"echo"}`)
		agent.Capabilities = []byte(`{"elicitation":{}}`)
		agent.Lane += "-able"
		do(t, single1(t, w, "young"), agent, mcp.MethodToolsCall, `{"name":"echo"}`)
	}
	if n := oldFake.Ledger().Count(mcp.MethodInitialize); n != 1 {
		t.Errorf("%d sessions", n)
	}
	for _, s := range w.host.Status().Servers {
		if s.Name == "young" && s.Lane != "" && s.Active {
			t.Errorf("a modern server has a connection for lane %s", s.Lane)
		}
	}
}

// TestMetaOfTheAgent wants a modern server to learn who its older agent is.
func TestMetaOfTheAgent(t *testing.T) {
	srv, _ := serve(t, "s", fake.Options{Versions: modernOnly})
	w := start(t, []config.Server{srv}, options{}, nil)
	agent := legacyAgent
	agent.Capabilities, agent.ClientInfo = []byte(`{"sampling":{}}`), []byte(`{"name":"editor","version":"1"}`)
	v := single1(t, w, "s")
	do(t, v, agent, mcp.MethodSetLevel, `{"level":"debug"}`)
	got := do(t, v, agent, mcp.MethodToolsCall, `{"name":"meta","arguments":{}}`)
	meta, _ := jsonx.Get([]byte(got), "structuredContent")
	for key, want := range map[string]string{
		mcp.MetaClientCaps: `{"sampling":{}}`, mcp.MetaClientInfo: `{"name":"editor","version":"1"}`, mcp.MetaLogLevel: `"debug"`,
	} {
		if v, _ := jsonx.Get(meta, key); string(v) != want {
			t.Errorf("%s: %s, want %s", key, v, want)
		}
	}
	if _, err := try(t, v, agent, mcp.MethodSetLevel, `{"level":"loud"}`); err == nil {
		t.Error("an unknown level is accepted")
	}
}

// TestLookalikesAreNotPassedOn: what a lenient server may read as a guarded method or
// member does not reach it at the endpoint of one server.
func TestLookalikesAreNotPassedOn(t *testing.T) {
	srv, s := serve(t, "s", fake.Options{})
	w := start(t, []config.Server{srv}, options{}, nil)
	v := single1(t, w, "s")
	for _, tt := range []struct {
		method, params string
		code           int64
	}{
		{"tools//call", `{"name":"pay","arguments":{}}`, mcp.CodeMethodNotFound},
		{"Tools/Call", `{"name":"pay","arguments":{}}`, mcp.CodeMethodNotFound},
		{"ｔools/call", `{"name":"pay","arguments":{}}`, mcp.CodeMethodNotFound},
		{"tools/./call", `{"name":"pay"}`, mcp.CodeMethodNotFound},
		{"resources//read", `{"uri":"fake://readme"}`, mcp.CodeMethodNotFound},
		{strings.Repeat("m", 200), `{}`, mcp.CodeMethodNotFound},
		{mcp.MethodToolsCall, `{"name":"echo","ｎame":"pay","arguments":{}}`, mcp.CodeInvalidParams},
		{mcp.MethodResourcesRead, `{"uri":"fake://readme","ｕri":"fake://other"}`, mcp.CodeInvalidParams},
		{mcp.MethodPromptsGet, `{"name":"greet","name ":"other"}`, mcp.CodeInvalidParams},
		{mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"greet","ｎame":"other"},"argument":{"name":"a","value":""}}`, mcp.CodeInvalidParams},
		{"x/y", `{"name":"a","NAME":"b"}`, mcp.CodeInvalidParams},
	} {
		for _, agent := range []Agent{modernAgent, legacyAgent} {
			_, err := v.Do(t.Context(), agent, mcp.Request{Method: tt.method, Params: []byte(tt.params)})
			var said *mcp.Error
			if !errors.As(err, &said) || said.Code != tt.code || strings.Contains(said.Message, "not found") {
				t.Errorf("%s %s: %v, want code %d, and not from the server", tt.method, tt.params, err, tt.code)
			}
		}
	}
	for _, c := range s.Ledger().Calls("pay") {
		t.Errorf("the server ran %+v", c)
	}
	// A method that resembles none is the server's own business, unless the token is
	// for single tools.
	_, err := v.Do(t.Context(), legacyAgent, mcp.Request{Method: "vendor/own", Params: []byte(`{}`)})
	var said *mcp.Error
	if !errors.As(err, &said) || said.Code != mcp.CodeMethodNotFound || !strings.Contains(said.Message, "not found") {
		t.Errorf("vendor/own: %v, want the server's answer", err)
	}
	scoped := legacyAgent
	scoped.Tools = []string{"s/echo"}
	if _, err := v.Do(t.Context(), scoped, mcp.Request{Method: "vendor/own", Params: []byte(`{}`)}); !errors.As(err, &said) || strings.Contains(said.Message, "not found") {
		t.Errorf("vendor/own with a token for echo: %v", err)
	}
}

// A server has one address for each account, and one without an account.
func TestEmptyLabelIsNoAccount(t *testing.T) {
	w := twoServers(t, options{}, nil)
	for _, name := range []string{"alpha@", "@", "@alpha", "alpha@@", "alpha@x", "Alpha", "alpha ", "alpha\x00", "ａlpha", "alpha%40", strings.Repeat("a", 1<<16)} {
		if v, err := w.Server(t.Context(), legacyAgent, name); !errors.Is(err, ErrUnknownView) {
			t.Errorf("%.20q: %v %v", name, v, err)
		}
	}
}
