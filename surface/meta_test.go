package surface

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface/search"
	"github.com/usher-mcp/usher/upstream"
)

// TestMetaToolIsSmall bounds what the tool costs an agent, whatever stands behind
// it.
func TestMetaToolIsSmall(t *testing.T) {
	if n := len(metaTool); n > 2800 {
		t.Errorf("the definition has %d bytes, want at most 2800", n)
	}
	if n := search.Tokens([]byte(metaTool)); n > 700 {
		t.Errorf("the definition costs about %d tokens, want at most 700", n)
	}
	if err := jsonx.Valid([]byte(metaTool)); err != nil {
		t.Error(err)
	}
	t.Logf("%d bytes, about %d tokens", len(metaTool), search.Tokens([]byte(metaTool)))
	var enum []string
	list, _ := jsonx.Path([]byte(metaTool), "inputSchema", "properties", "action", "enum")
	for e := jsonx.Array(list); e.Next(); {
		s, _ := jsonx.Text(e.Value)
		enum = append(enum, s)
	}
	if diff := cmp.Diff(actions, enum); diff != "" {
		t.Errorf("actions (-known +declared)\n%s", diff)
	}
	for _, a := range actions {
		if !strings.Contains(metaHelp, `{"action":"`+a+`"`) {
			t.Errorf("help has no example of %s", a)
		}
	}
}

func TestMetaListIsConstant(t *testing.T) {
	few := twoServers(t, options{}, nil)
	none := start(t, nil, options{}, nil)
	for _, a := range []Agent{modernAgent, legacyAgent, {Version: mcp.V20241105}} {
		one, two := do(t, few.Meta(), a, mcp.MethodToolsList, `{}`), do(t, none.Meta(), a, mcp.MethodToolsList, `{}`)
		if one != two {
			t.Errorf("(-with servers +without)\n%s", cmp.Diff(one, two))
		}
		if diff := cmp.Diff([]string{"mcp"}, names(one, "tools", "name")); diff != "" {
			t.Error(diff)
		}
	}
}

// metaRig has servers in all states.
func metaRig(t *testing.T) *rig {
	needs, _ := serve(t, "needs", fake.Options{})
	gone := config.Server{Name: "gone", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1/mcp"}
	off := config.Server{Name: "switched-off", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1/mcp", Disabled: true}
	alpha, _ := serve(t, "alpha", fake.Options{
		Versions: modernOnly,
		Tools: []fake.Tool{
			simple("alpha", "create_issue", "Opens a ticket\nMore."), simple("alpha", "secret", "Not for agents"), fake.DefaultTools()[0], fake.DefaultTools()[6], fake.DefaultTools()[7],
		},
	})
	alpha.Title = "The issue tracker"
	beta, _ := serve(t, "beta", fake.Options{Versions: legacyOnly, Tools: []fake.Tool{simple("beta", "send_mail", "Sends a letter")}})
	return start(t, []config.Server{alpha, beta, needs, gone, off}, options{Logins: &logins{}}, func(c *config.Config, o *host.Options) {
		c.Servers[0].Tools.Deny = []string{"secret"}
		o.Auth = loginFor("needs")
	})
}

// loginFor is an Authorizer that wants a login for one server.
type loginFor string

func (l loginFor) Authorize(_ context.Context, k host.Key, _ *config.Server, _ *http.Request) error {
	if k.Server == string(l) {
		return &host.NeedsLoginError{Reason: "nobody is logged in", Command: "usher login " + k.Server}
	}
	return nil
}

func (l loginFor) Refused(context.Context, host.Key, config.Server, *upstream.UnauthorizedError) error {
	return nil
}

func TestMetaActions(t *testing.T) {
	w := metaRig(t)
	echo := fake.DefaultTools()[0].Def
	for _, tt := range []struct {
		name, args string
		failed     bool
		want       []string // parts of the text; the first is all of it when it begins with =
	}{
		{"nothing", `null`, true, []string{"`action` is missing", "complete_login"}},
		{"no action", `{}`, true, []string{"`action` is missing"}},
		{"unknown action", `{"action":"list_server"}`, true, []string{`There is no action "list_server"; did you mean list_servers?`, "describe_tool"}},
		{"action of another type", `{"action":5}`, true, []string{"`action` must be a string, not number"}},
		{"no verb adds a server", `{"action":"add_server","server":"x"}`, true, []string{"There is no action"}},
		{"no verb approves a server", `{"action":"approve","server":"x"}`, true, []string{"There is no action"}},
		{"help", `{"action":"help"}`, false, []string{"=" + metaHelp}},
		{"list_servers", `{"action":"list_servers"}`, false, []string{"alpha: ", "http, 4 tools - The issue tracker", "beta: ", "gone: ", "tools not known yet", "switched-off: off"}},
		{"search", `{"action":"search","query":"open a ticket"}`, false, []string{"alpha / create_issue - Opens a ticket\n", "Next: describe_tool"}},
		{"search with a limit", `{"action":"search","query":"ticket letter arguments","limit":1}`, false, []string{" / "}},
		{"search for nothing", `{"action":"search"}`, true, []string{"Action search needs `query`"}},
		{"search in vain", `{"action":"search","query":"qqqqq"}`, false, []string{`No tool fits "qqqqq"`, "list_servers"}},
		{"denied tools are not found", `{"action":"search","query":"secret agents"}`, false, []string{"No tool fits"}},
		{"limit of another type", `{"action":"search","query":"x","limit":"many"}`, true, []string{"`limit` must be a number, not string"}},
		{"list_tools", `{"action":"list_tools","server":"alpha"}`, false, []string{"=create_issue - Opens a ticket\necho - Returns its arguments\nfail - Fails\nrpcerror - Answers with a JSON-RPC error"}},
		{"list_tools of nobody", `{"action":"list_tools"}`, true, []string{"Action list_tools needs `server`", "list_servers"}},
		{"list_tools misspelt", `{"action":"list_tools","server":"alfa"}`, true, []string{`No server is named "alfa"; did you mean alpha?`, "list_servers"}},
		{"list_tools of one that needs a login", `{"action":"list_tools","server":"needs"}`, true, []string{"login", `Use action login with server "needs"`}},
		{"list_tools of one that is down", `{"action":"list_tools","server":"gone"}`, true, []string{"gone", `Use action status with server "gone"`}},
		{"list_tools of one that is off", `{"action":"list_tools","server":"switched-off"}`, true, []string{"disabled", "Only a person"}},
		{"describe_tool", `{"action":"describe_tool","server":"alpha","tool":"echo"}`, false, []string{"=" + string(echo)}},
		{"describe_tool without a tool", `{"action":"describe_tool","server":"alpha"}`, true, []string{"needs `tool`", `list_tools with server "alpha"`}},
		{"describe_tool misspelt", `{"action":"describe_tool","server":"alpha","tool":"create_isue"}`, true, []string{`alpha has no tool named "create_isue"; did you mean create_issue?`}},
		{"describe_tool of another server", `{"action":"describe_tool","server":"alpha","tool":"send_mail"}`, true, []string{"beta has one that may be meant: send_mail"}},
		{"describe_tool denied", `{"action":"describe_tool","server":"alpha","tool":"secret"}`, true, []string{`alpha has no tool named "secret"`}},
		{"call", `{"action":"call","server":"beta","tool":"send_mail"}`, false, []string{"=beta/send_mail"}},
		{"call with null", `{"action":"call","server":"alpha","tool":"echo","arguments":null}`, false, []string{"={}"}},
		{"call with arguments", `{"action":"call","server":"alpha","tool":"echo","arguments":{ "n":9007199254740993}}`, false, []string{`={ "n":9007199254740993}`}},
		{"call with a string", `{"action":"call","server":"alpha","tool":"echo","arguments":"{}"}`, true, []string{"`arguments` must be an object, not string", "describe_tool"}},
		{"call with a list", `{"action":"call","server":"alpha","tool":"echo","arguments":[]}`, true, []string{"not array"}},
		{"call with a number", `{"action":"call","server":"alpha","tool":"echo","arguments":3}`, true, []string{"not number"}},
		{"call with false", `{"action":"call","server":"alpha","tool":"echo","arguments":false}`, true, []string{"not boolean"}},
		{"call of an unknown tool", `{"action":"call","server":"alpha","tool":"ecko"}`, true, []string{"did you mean echo?"}},
		{"call of an unknown server", `{"action":"call","server":"alpa","tool":"echo"}`, true, []string{"did you mean alpha?"}},
		{"call of a denied tool", `{"action":"call","server":"alpha","tool":"secret"}`, true, []string{`alpha has no tool named "secret"`}},
		{"call of one that is down", `{"action":"call","server":"gone","tool":"x"}`, true, []string{"gone", "other servers are not affected"}},
		{"call that fails by itself", `{"action":"call","server":"alpha","tool":"fail"}`, true, []string{"it did not work"}},
		{"status", `{"action":"status"}`, false, []string{`"server":"alpha"`, `"server":"gone"`, `"last_error"`, `"logins":[{"server":"alpha"`}},
		{"status of one", `{"action":"status","server":"beta"}`, false, []string{`"server":"beta","state":"connected"`}},
		{"status of nobody", `{"action":"status","server":"bta"}`, true, []string{"did you mean beta?"}},
		{"login", `{"action":"login","server":"alpha"}`, false, []string{"To log in to **alpha**, open [this link](https://example.com/authorize)", "Use action status", "handle: `h-1`"}},
		{"login to an account", `{"action":"login","server":"alpha@work"}`, false, []string{"**alpha@work**"}},
		{"login to all", `{"action":"login","server":"all"}`, false, []string{"**needs**: [log in]"}},
		{"login to nobody", `{"action":"login","server":"alpa"}`, true, []string{"did you mean alpha?"}},
		{"login that does not start", `{"action":"login","server":"beta"}`, true, []string{"does not speak OAuth", "status"}},
		{"login without a server", `{"action":"login"}`, true, []string{"Action login needs `server`"}},
		{"complete_login", `{"action":"complete_login","server":"alpha","redirect_url":"http://127.0.0.1/callback?code=1"}`, false, []string{"Logged in to **alpha**"}},
		{"complete_login without the address", `{"action":"complete_login","server":"alpha"}`, true, []string{"needs `redirect_url`"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, agent := range []Agent{legacyAgent, modernAgent} {
				got, failed := text(do(t, w.Meta(), agent, mcp.MethodToolsCall, `{"name":"mcp","arguments":`+tt.args+`}`))
				if failed != tt.failed {
					t.Errorf("isError is %v: %s", failed, got)
				}
				for _, part := range tt.want {
					if all, whole := strings.CutPrefix(part, "="); whole && got != all || !whole && !strings.Contains(got, part) {
						t.Errorf("%q lacks %q", got, part)
					}
				}
			}
		})
	}
}

// TestMetaCallErrors wants protocol errors of a server handed on as they are, and a
// needed login left to whoever can show it.
func TestMetaCallErrors(t *testing.T) {
	w := metaRig(t)
	call := func(args string) error {
		_, err := try(t, w.Meta(), modernAgent, mcp.MethodToolsCall, `{"name":"mcp","arguments":`+args+`}`)
		return err
	}
	var werr *mcp.Error
	if err := call(`{"action":"call","server":"alpha","tool":"rpcerror","arguments":{"code":-32050,"message":"own"}}`); !errors.As(err, &werr) || werr.Code != -32050 {
		t.Errorf("an error of the server: %v", err)
	}
	if err := call(`{"action":"call","server":"needs","tool":"echo"}`); !errors.Is(err, host.ErrNeedsLogin) || w.Explain(err).Kind != KindLogin {
		t.Errorf("a needed login: %v", err)
	}
	if _, err := try(t, w.Meta(), modernAgent, mcp.MethodToolsCall, `{"name":"alpha__echo"}`); !errors.As(err, &werr) || werr.Code != mcp.CodeInvalidParams {
		t.Errorf("another tool: %v", err)
	}
	for _, method := range []string{mcp.MethodPromptsList, mcp.MethodResourcesList, "servers/add"} {
		if _, err := try(t, w.Meta(), modernAgent, method, `{}`); !errors.As(err, &werr) || werr.Code != mcp.CodeMethodNotFound {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestMetaRetries wants what answers a server's question to reach it.
func TestMetaRetries(t *testing.T) {
	srv, fk := serve(t, "s", fake.Options{Versions: modernOnly})
	w := start(t, []config.Server{srv}, options{}, nil)
	agent := modernAgent
	meta := fmt.Sprintf(`"_meta":{%q:{"elicitation":{}}}`, mcp.MetaClientCaps)
	first := do(t, w.Meta(), agent, mcp.MethodToolsCall, `{"name":"mcp","arguments":{"action":"call","server":"s","tool":"ask"},`+meta+`}`)
	if mcp.ResultType([]byte(first)) != mcp.ResultInputRequired {
		t.Fatalf("no question: %s", first)
	}
	state, _ := jsonx.Get([]byte(first), "requestState")
	requests, _ := jsonx.Get([]byte(first), "inputRequests")
	id := ""
	for m := jsonx.Object(requests); m.Next(); {
		id = string(m.Key)
	}
	second := do(t, w.Meta(), agent, mcp.MethodToolsCall, fmt.Sprintf(
		`{"name":"mcp","arguments":{"action":"call","server":"s","tool":"ask"},%s,"requestState":%s,"inputResponses":{%q:{"action":"accept","content":{"answer":"yes"}}}}`, meta, state, id))
	if mcp.ResultType([]byte(second)) != mcp.ResultComplete {
		t.Errorf("no answer: %s", second)
	}
	if n := len(fk.Ledger().Calls("ask")); n != 2 {
		t.Errorf("%d calls", n)
	}
}

func TestAuto(t *testing.T) {
	small := host.Catalog{Version: mcp.V20260728, Tools: [][]byte{tool("t", "", "d")}}
	for _, tt := range []struct {
		name    string
		catalog host.Catalog
		opt     Options
		want    string
		why     string
	}{
		{"fits", small, Options{}, ModeDirect, "fit the budget"},
		{"too many", bigCatalog(200, 1), Options{}, ModeMeta, "the budget is 10000"},
		{"larger budget", bigCatalog(200, 1), Options{TokenBudget: 1 << 20}, ModeDirect, "fit"},
		{"configured", small, Options{Mode: ModeMeta}, ModeMeta, "configuration"},
		{"never seen", host.Catalog{}, Options{TokenBudget: 1000}, ModeMeta, "never seen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := config.Server{Name: "s", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1/mcp"}
			w := start(t, []config.Server{srv}, options{Options: tt.opt}, func(_ *config.Config, o *host.Options) {
				if tt.catalog.Tools != nil {
					o.Memory = &memory{tools: map[host.Key]host.Catalog{{Principal: local, Server: "s"}: tt.catalog}}
				}
			})
			view, e := w.Auto()
			if _, direct := view.(*direct); e.Mode != tt.want || direct != (tt.want == ModeDirect) || !strings.Contains(e.Why, tt.why) {
				t.Errorf("%+v", e)
			}
			if len(e.Rows) != 1 || e.Rows[0].Tools != len(tt.catalog.Tools) || e.Rows[0].Tokens != e.Tokens {
				t.Errorf("%+v", e.Rows)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "word": 1, "two words": 2, "internationalization": 4, `{"a":1}`: 5, "12345": 2, "żółw": 4, "a  b": 3} {
		if got := search.Tokens([]byte(text)); got != want {
			t.Errorf("%q costs %d, want %d", text, got, want)
		}
	}
}
