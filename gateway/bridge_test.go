package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

const canAll = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`

// backends are the four kinds of servers that a gateway stands before.
func backends(t *testing.T) []config.Server {
	t.Helper()
	newHTTP, _ := httpFake(t, "newhttp", &fake.Options{Versions: versionsOf(true)})
	oldHTTP, _ := httpFake(t, "oldhttp", &fake.Options{Versions: versionsOf(false)})
	newStdio, _ := stdioFake(t, "newstdio", "--versions", mcp.Latest)
	oldStdio, _ := stdioFake(t, "oldstdio", "--versions", strings.Join(versionsOf(false), ","))
	return []config.Server{newHTTP, oldHTTP, newStdio, oldStdio}
}

// Every revision of agent before every kind of server: lists, calls, progress and
// all three kinds of questions.
func TestEveryEraBeforeEveryEra(t *testing.T) {
	servers := backends(t)
	s := newStack(t, nil, servers...)
	for _, version := range mcp.Versions() {
		for _, srv := range servers {
			t.Run(version+"/"+srv.Name, func(t *testing.T) {
				t.Parallel()
				ctx := long(t)
				a := newAgent(t, s.url+"/servers/"+srv.Name+"/mcp", version, canAll)
				if got := a.do(ctx, mcp.MethodToolsList, `{}`, nil); got.err != nil || !strings.Contains(string(got.result), `"name":"echo"`) {
					t.Errorf("tools/list: %v %.200s", got.err, got.result)
				}
				got := a.call(ctx, "echo", `{"n":9007199254740993}`, nil)
				if text(t, got.result) != `{"n":9007199254740993}` {
					t.Errorf("echo: %s", got.result)
				}
				if mcp.Stateless(version) && mcp.ResultType(got.result) != mcp.ResultComplete {
					t.Errorf("no resultType: %s", got.result)
				}
				checkProgress(t, a)
				for _, q := range questions {
					got := a.ask(ctx, q)
					if !strings.Contains(string(got), q.want) {
						t.Errorf("%s: got %s, want %s in it", q.tool, got, q.want)
					}
				}
			})
		}
	}
}

// inquiry is a tool that asks, what it asks, and what comes of the answer.
type inquiry struct{ tool, method, answer, want string }

var questions = []inquiry{
	{"ask", mcp.MethodElicit, `{"action":"accept","content":{"name":"Ada"}}`, `"name":"Ada"`},
	{"sample", mcp.MethodSample, `{"role":"assistant","content":{"type":"text","text":"hm"},"model":"m"}`, `"model":"m"`},
	{"roots", mcp.MethodRoots, `{"roots":[{"uri":"file:///x"}]}`, `file:///x`},
}

// ask calls a tool that asks and answers in the way of the agent's era.
func (a *agent) ask(ctx context.Context, q inquiry) []byte {
	a.t.Helper()
	if !mcp.Stateless(a.version) {
		asked := false
		got := a.call(ctx, q.tool, `{}`, func(m mcp.Message) string {
			asked = m.Method == q.method
			return q.answer
		})
		if !asked {
			a.t.Errorf("%s was not asked for", q.method)
		}
		return got.result
	}
	got := a.call(ctx, q.tool, `{}`, nil)
	if len(got.before) > 0 {
		a.t.Errorf("before input_required: %v", got.before)
	}
	again := a.retry(ctx, q.tool, got.result, q)
	return again.result
}

// retry answers what a result of the stateless protocol asks.
func (a *agent) retry(ctx context.Context, tool string, result []byte, q inquiry) said {
	a.t.Helper()
	if mcp.ResultType(result) != mcp.ResultInputRequired {
		a.t.Fatalf("not input_required: %s", result)
	}
	requests, _ := jsonx.Get(result, "inputRequests")
	responses := []byte("{}")
	for m := jsonx.Object(requests); m.Next(); {
		if method := jsonx.GetText(m.Value, "method"); method != q.method {
			a.t.Errorf("asked for %s, want %s", method, q.method)
		}
		responses = jsonx.Set(responses, string(m.Key), []byte(q.answer))
	}
	params := fmt.Sprintf(`{"name":%q,"arguments":{},"inputResponses":%s}`, tool, responses)
	if state, ok := jsonx.Get(result, "requestState"); ok {
		params = string(jsonx.Set([]byte(params), "requestState", state))
	}
	return a.do(ctx, mcp.MethodToolsCall, params, nil)
}

func checkProgress(t *testing.T, a *agent) {
	t.Helper()
	got := a.do(long(t), mcp.MethodToolsCall, `{"name":"slow","arguments":{"ms":3,"steps":3},"_meta":{"progressToken":"p-1"}}`, nil)
	if got.err != nil || text(t, got.result) != "done" {
		t.Fatalf("slow: %v %s", got.err, got.result)
	}
	last := ""
	for _, m := range got.before {
		if m.Method != mcp.MethodNotifyProgress || jsonx.GetText(m.Params, "progressToken") != "p-1" {
			t.Errorf("before the answer: %s", m.Raw)
		}
		v, _ := jsonx.Get(m.Params, "progress")
		last = string(v)
	}
	if last != "3" {
		t.Errorf("progress ended with %q", last)
	}
}

// An agent that declared nothing is not asked, whatever stands behind.
func TestNobodyIsAskedWhoCannotAnswer(t *testing.T) {
	servers := backends(t)
	s := newStack(t, nil, servers...)
	for _, version := range []string{mcp.Latest, mcp.LatestLegacy} {
		for _, srv := range servers {
			t.Run(version+"/"+srv.Name, func(t *testing.T) {
				a := newAgent(t, s.url+"/servers/"+srv.Name+"/mcp", version, `{}`)
				got := a.do(long(t), mcp.MethodToolsCall, `{"name":"ask","arguments":{}}`, func(m mcp.Message) string {
					t.Errorf("asked: %s", m.Raw)
					return `{"action":"cancel"}`
				})
				if got.err == nil && !strings.Contains(string(got.result), `"isError":true`) {
					t.Errorf("it worked: %s", got.result)
				}
			})
		}
	}
}

// A modern server says with its own code what an agent lacks, and HTTP says so too.
func TestMissingCapabilityPasses(t *testing.T) {
	srv, _ := httpFake(t, "f", &fake.Options{Versions: versionsOf(true), Switches: []string{"rpc-error=-32021"}})
	s := newStack(t, nil, srv)
	a := newAgent(t, s.url+"/servers/f/mcp", mcp.Latest, `{}`)
	got := a.do(long(t), mcp.MethodToolsCall, `{"name":"echo","arguments":{}}`, nil)
	if got.status != http.StatusBadRequest || got.err == nil || got.err.Code != mcp.CodeMissingCapability {
		t.Errorf("HTTP %d, %v", got.status, got.err)
	}
}

// An error of 2025-11-25 that sends a person to a URL becomes a question of the
// stateless protocol, and the retry is the same call again.
func TestURLErrorBecomesQuestion(t *testing.T) {
	srv, f := httpFake(t, "f", &fake.Options{Versions: versionsOf(false)})
	s := newStack(t, nil, srv)
	a := newAgent(t, s.url+"/servers/f/mcp", mcp.Latest, canAll)
	got := a.call(long(t), "urlneeded", `{}`, nil)
	v, _ := jsonx.Path(got.result, "inputRequests", "q1", "params", "url")
	if string(v) != `"https://example.com/sign-in"` {
		t.Fatalf("got %s", got.result)
	}
	a.retry(long(t), "urlneeded", got.result, inquiry{method: mcp.MethodElicit, answer: `{"action":"accept"}`})
	calls := f.Ledger().Calls("urlneeded")
	if len(calls) != 2 || strings.Contains(string(calls[1].Params), "requestState") {
		t.Errorf("%d calls; the last %s", len(calls), calls[len(calls)-1].Params)
	}
	old := newAgent(t, s.url+"/servers/f/mcp", mcp.LatestLegacy, canAll)
	if got := old.do(long(t), mcp.MethodToolsCall, `{"name":"urlneeded"}`, nil); got.err == nil || got.err.Code != mcp.CodeURLElicitation {
		t.Errorf("an agent of the same era gets %v", got.err)
	}
}

// Log messages reach agents of both eras as they asked for them.
func TestLogLevels(t *testing.T) {
	srv, _ := httpFake(t, "f", nil)
	s := newStack(t, nil, srv)
	quiet := newAgent(t, s.url+"/servers/f/mcp", mcp.Latest, `{}`)
	if got := quiet.call(long(t), "log", `{"count":2}`, nil); len(got.before) != 0 {
		t.Errorf("nobody asked for %v", got.before)
	}
	for level, want := range map[string]int{"debug": 2, "info": 2, "error": 0} {
		params := `{"name":"log","arguments":{"count":2},"_meta":{"` + mcp.MetaLogLevel + `":"` + level + `"}}`
		got := quiet.do(long(t), mcp.MethodToolsCall, params, nil)
		if len(got.before) != want {
			t.Errorf("level %s: %d messages, want %d", level, len(got.before), want)
		}
	}
	old := newAgent(t, s.url+"/servers/f/mcp", mcp.LatestLegacy, `{}`)
	if got := old.do(long(t), mcp.MethodSetLevel, `{"level":"info"}`, nil); got.err != nil || string(got.result) != `{}` {
		t.Fatalf("setLevel: %v %s", got.err, got.result)
	}
	if got := old.call(long(t), "log", `{"count":2}`, nil); len(got.before) != 2 {
		t.Errorf("older agent: %d messages", len(got.before))
	}
	if got := old.do(long(t), mcp.MethodSetLevel, `{"level":"loud"}`, nil); got.err == nil || got.err.Code != mcp.CodeInvalidParams {
		t.Errorf("a level that is none: %v", got.err)
	}
}
