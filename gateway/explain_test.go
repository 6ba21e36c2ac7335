package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// Failures are told in the form that a model can act on.
func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		problem      surface.Problem
		err          error
		method       string
		code         int64  // 0: a result
		want, absent string // in the answer
	}{
		{surface.Problem{Kind: surface.KindDenied, Text: "git/push is denied by rule x", Next: "edit the rule"}, nil, "tools/call", 0, "git/push is denied by rule x. Next: edit the rule.", ""},
		{surface.Problem{Kind: surface.KindBudget, Text: "the budget is spent", RetryAfter: 90 * time.Second}, nil, "tools/call", 0, "Try again in 1m30s", ""},
		{surface.Problem{Kind: surface.KindChanged, Text: "blocked; usher pins accept a/b", Next: "usher pins accept a/b"}, nil, "tools/call", 0, "usher pins accept a/b.", "Next"},
		{surface.Problem{Kind: surface.KindUnavailable, Text: "connection refused"}, nil, "tools/call", 0, "connection refused", ""},
		{surface.Problem{Kind: surface.KindUnavailable, Text: "connection refused"}, nil, "prompts/get", mcp.CodeInternal, "connection refused", "isError"},
		{surface.Problem{Kind: surface.KindUnknownTool, Text: "no tool x", Next: "did you mean y?"}, nil, "tools/call", mcp.CodeInvalidParams, "did you mean y?", ""},
		{surface.Problem{Kind: surface.KindUnknownServer, Text: "no server x"}, nil, "tools/call", mcp.CodeInvalidParams, "no server x", ""},
		{surface.Problem{Kind: surface.KindLogin, Text: "a needs a login", Next: "run: usher login a", Server: "a"}, nil, "tools/call", 0, "run: usher login a", ""},
		{surface.Problem{}, mcp.Errorf(-32000, "own words"), "tools/call", -32000, "own words", ""},
		{surface.Problem{}, fmt.Errorf("around: %w", mcp.Errorf(mcp.CodeResourceNotFound, "gone")), "resources/read", 0, "gone", ""},
	} {
		err := tt.err
		if err == nil {
			err = errScript
		}
		view := &script{problem: tt.problem, do: func(context.Context, surface.Agent, mcp.Request) ([]byte, error) { return nil, err }}
		g := New(view, nil)
		h := g.Handler()
		session := hello(t, h)
		for era, w := range map[string]string{
			"modern": send(t, h, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`","params":{"name":"x","uri":"x",`+goodMeta+`}}`,
				wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, tt.method, wire.HeaderName, "x").Body.String(),
			"older": send(t, h, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`","params":{"name":"x","uri":"x"}}`, wire.HeaderSession, session).Body.String(),
		} {
			code := tt.code
			if tt.method == "resources/read" { // told apart by era
				code = map[string]int64{"modern": mcp.CodeInvalidParams, "older": mcp.CodeResourceNotFound}[era]
			}
			if got := errorCode([]byte(w)); got != code || !strings.Contains(w, tt.want) || tt.absent != "" && strings.Contains(w, tt.absent) {
				t.Errorf("%s, %s: %s", tt.problem.Kind, era, w)
			}
			if code == 0 && (!strings.Contains(w, `"isError":true`) || era == "modern" && !strings.Contains(w, `"resultType":"complete"`)) {
				t.Errorf("%s, %s: %s", tt.problem.Kind, era, w)
			}
		}
		g.Close()
	}
}

// logins is a login that a test lets happen.
type logins struct {
	begun int
	alone bool // it needs nobody
	over  atomic.Bool
	fail  error
}

func (l *logins) begin(principal, target string) (surface.Login, error) {
	l.begun++
	if l.alone {
		return surface.Login{Server: target, State: "done"}, nil
	}
	return surface.Login{Server: target, Flow: "browser", State: "pending", Handle: "h-1", URL: "https://login.example.com/" + principal}, l.fail
}

// A call that needs a login sends the person to a URL where the agent can show it,
// and goes through once they have been there.
func TestLoginByURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &logins{}
		view := &script{problem: surface.Problem{Kind: surface.KindLogin, Server: "linear", Text: "linear needs a login"}}
		var params []byte
		view.do = func(_ context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
			params = r.Params
			if !l.over.Load() {
				return nil, errScript
			}
			return []byte(`{"content":[]}`), nil
		}
		view.logins = l
		g := New(view, nil)
		defer g.Close()
		h := g.Handler()
		first := result(t, callTool(t, h, "x", ""))
		url, _ := jsonx.Path(first, "inputRequests", "login", "params", "url")
		if mcp.ResultType(first) != mcp.ResultInputRequired || string(url) != `"https://login.example.com/local"` {
			t.Fatalf("got %s", first)
		}
		state := string(member(first, "requestState"))
		go func() {
			time.Sleep(5 * time.Second)
			l.over.Store(true)
		}()
		began := time.Now()
		got := result(t, callTool(t, h, "x", `,"inputResponses":{"login":{"action":"accept"}},"requestState":`+state))
		if string(got) != `{"content":[],"resultType":"complete"}` || strings.Contains(string(params), "requestState") {
			t.Errorf("got %s for %s", got, params)
		}
		if took := time.Since(began); took < 4*time.Second || took > 7*time.Second {
			t.Errorf("waited %s", took)
		}
		l.over.Store(false)
		got = result(t, callTool(t, h, "x", `,"inputResponses":{"login":{"action":"decline"}},"requestState":`+state))
		if !strings.Contains(string(got), `"isError":true`) || l.begun != 1 {
			t.Errorf("declined: %s, %d logins begun", got, l.begun)
		}
		got = result(t, callTool(t, h, "x", `,"inputResponses":{"login":{"action":"accept"}},"requestState":`+state))
		if mcp.ResultType(got) != mcp.ResultInputRequired || l.begun != 2 {
			t.Errorf("after waiting for nothing: %s", got)
		}
	})
}

// Where no URL can be shown the text says what to do, with the handle.
func TestLoginByText(t *testing.T) {
	view := &script{problem: surface.Problem{Kind: surface.KindLogin, Server: "linear", Text: "linear needs a login", Next: "run: usher login linear"}}
	view.do = func(context.Context, surface.Agent, mcp.Request) ([]byte, error) { return nil, errScript }
	for _, fail := range []error{nil, errors.New("no")} {
		view.logins = &logins{fail: fail}
		g := New(view, nil)
		h := g.Handler()
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"`
		modern := send(t, h, "POST", "/mcp", call+`,`+goodMeta+`}}`, wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, mcp.MethodToolsCall, wire.HeaderName, "x").Body.String()
		older := send(t, h, "POST", "/mcp", call+`}}`, wire.HeaderSession, hello(t, h)).Body.String()
		wants := []string{"h-1", "https://login.example.com/local", `"isError":true`}
		if fail != nil {
			wants = []string{"run: usher login linear", `"isError":true`}
		}
		for _, want := range wants {
			if !strings.Contains(modern, want) || !strings.Contains(older, want) {
				t.Errorf("%q is missing:\n%s\n%s", want, modern, older)
			}
		}
		w := send(t, h, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}}},"clientInfo":{}}}`)
		got := send(t, h, "POST", "/mcp", call+`}}`, wire.HeaderSession, w.Header().Get(wire.HeaderSession)).Body.Bytes()
		if fail == nil && (errorCode(got) != mcp.CodeURLElicitation || !strings.Contains(string(got), `"elicitationId":"h-1","url":"https://login.example.com/local"`)) {
			t.Errorf("2025-11-25: %s", got)
		}
		g.Close()
	}
}

// A login that needs nobody is made at once, and the agent told to go on.
func TestLoginThatNeedsNobody(t *testing.T) {
	view := &script{problem: surface.Problem{Kind: surface.KindLogin, Server: "a", Text: "a needs a login"}, do: func(context.Context, surface.Agent, mcp.Request) ([]byte, error) {
		return nil, errScript
	}}
	view.logins = &logins{alone: true}
	g := New(view, nil)
	defer g.Close()
	h := g.Handler()
	got := callTool(t, h, "x", "")
	if text := string(got); !strings.Contains(text, "Make the same call again") || strings.Contains(text, "usher login") {
		t.Errorf("got %s", text)
	}
}
