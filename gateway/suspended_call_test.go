package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/gateway/internal/suspend"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

const askMeta = `"_meta":{"` + mcp.MetaVersion + `":"2026-07-28","` + mcp.MetaClientCaps + `":{"elicitation":{"url":{}},"sampling":{}}}`

// callTool posts a tools/call of an agent that can be asked.
func callTool(t *testing.T, h http.Handler, name, more string) []byte {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{}%s,%s}}`, name, more, askMeta)
	w := send(t, h, "POST", "/mcp", body, wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, mcp.MethodToolsCall, wire.HeaderName, name)
	return last(w.Body.String())
}

// last is the answer at the end of a stream, or the whole of what is none.
func last(body string) []byte {
	return []byte(strings.TrimSpace(body[strings.LastIndex("data: "+body, "data: "):]))
}

func result(t *testing.T, response []byte) []byte {
	t.Helper()
	r, ok := jsonx.Get(response, "result")
	if !ok {
		t.Fatalf("no result: %s", response)
	}
	return r
}

func errorCode(response []byte) int64 {
	e, ok := jsonx.Get(response, "error")
	if !ok {
		return 0
	}
	return mcp.ParseError(e).Code
}

// asking is a view whose tool asks twice at once, then once more.
func asking(ended chan error) *script {
	return &script{do: func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
		type heard struct {
			text string
			bad  *mcp.Error
		}
		ask := func(message string) heard {
			got, bad := r.OnRequest(ctx, mcp.MethodElicit, []byte(`{"message":"`+message+`"}`))
			return heard{jsonx.GetText(got, "v"), bad}
		}
		both := make(chan heard, 2)
		for _, m := range []string{"a", "b"} {
			go func() { both <- ask(m) }()
		}
		texts := ""
		for range 2 {
			h := <-both
			if h.bad != nil {
				ended <- h.bad
				return nil, h.bad
			}
			texts += h.text
		}
		last := ask("c")
		ended <- nil
		return []byte(`{"content":[{"type":"text","text":"` + texts + last.text + `"}]}`), nil
	}}
}

// A call that asks is parked and woken, as often as it has to be; what was not
// answered is asked again.
func TestSuspendAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		g := New(asking(ended), nil)
		defer g.Close()
		h := g.Handler()
		first := result(t, callTool(t, h, "x", ""))
		if requests := string(member(first, "inputRequests")); !strings.Contains(requests, `"q1"`) || !strings.Contains(requests, `"q2"`) {
			t.Errorf("of two questions side by side the first answer asks %s", requests)
		}
		state := string(member(first, "requestState"))
		second := result(t, callTool(t, h, "x", `,"inputResponses":{},"requestState":`+state))
		requests := member(second, "inputRequests")
		if !strings.Contains(string(requests), `"q1"`) || !strings.Contains(string(requests), `"q2"`) {
			t.Fatalf("asks for %s", requests)
		}
		if got := callTool(t, h, "x", `,"inputResponses":{},"requestState":`+state); errorCode(got) != mcp.CodeInvalidParams {
			t.Errorf("an old state works: %s", got)
		}
		state = string(member(second, "requestState"))
		if got := callTool(t, h, "y", `,"inputResponses":{},"requestState":`+state); errorCode(got) != mcp.CodeInvalidParams {
			t.Errorf("the state works for another tool: %s", got)
		}
		third := result(t, callTool(t, h, "x", `,"inputResponses":{"q1":{"v":"1"},"q2":{"v":"1"},"zz":{}},"requestState":`+state))
		if !strings.Contains(string(third), `"message":"c"`) {
			t.Fatalf("then %s", third)
		}
		if n := g.Stats().Waiting; n != 1 {
			t.Errorf("%d parked", n)
		}
		state = string(member(third, "requestState"))
		last := result(t, callTool(t, h, "x", `,"inputResponses":{"q3":{"v":"3"}},"requestState":`+state))
		if !strings.Contains(string(last), `"text":"113"`) || mcp.ResultType(last) != mcp.ResultComplete {
			t.Errorf("ended with %s", last)
		}
		if s := g.Stats(); s.Waiting != 0 || s.Suspended != 3 || s.Resumed != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// Nobody waits permanently for an agent that does not come back.
func TestSuspendedCallExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		g := New(asking(ended), &Options{SuspendTime: time.Minute})
		defer g.Close()
		first := result(t, callTool(t, g.Handler(), "x", ""))
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		if g.Stats().Waiting != 1 {
			t.Fatal("gave up early")
		}
		time.Sleep(2 * time.Second)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), suspend.ErrExpired.Error()) {
			t.Errorf("the server was told %v", err)
		}
		got := callTool(t, g.Handler(), "x", `,"inputResponses":{"q1":{"v":"1"}},"requestState":`+string(member(first, "requestState")))
		if errorCode(got) != mcp.CodeInvalidParams {
			t.Errorf("a state that ran out: %s", got)
		}
	})
}

// Closing the gateway cancels what is parked.
func TestCloseCancelsSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		g := New(asking(ended), nil)
		callTool(t, g.Handler(), "x", "")
		g.Close()
		if err := <-ended; err == nil {
			t.Error("it went on")
		}
	})
}

// One principal cannot park calls without end; the server is told at once.
func TestSuspendedCallsAreLimited(t *testing.T) {
	ended := make(chan error, 2)
	g := New(asking(ended), &Options{MaxSuspended: 10})
	defer g.Close()
	callTool(t, g.Handler(), "x", "")
	got := callTool(t, g.Handler(), "x", "")
	if err := <-ended; err == nil || errorCode(got) != mcp.CodeInternal {
		t.Errorf("%v: %s", err, got)
	}
}

// A foreign state is the server's business.
func TestForeignStatePasses(t *testing.T) {
	var got []byte
	view := &script{do: func(_ context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
		got = r.Params
		return []byte(`{"resultType":"input_required","requestState":"theirs-2"}`), nil
	}}
	g := New(view, nil)
	defer g.Close()
	other := newSealer(make([]byte, sealKeyLen)).seal(state{Kind: stateSuspended}, "local", time.Minute)
	for _, st := range []string{"theirs", "", "usher1.", other} {
		more := `,"inputResponses":{"a":{}},"requestState":` + string(jsonx.Quote(st))
		res := result(t, callTool(t, g.Handler(), "x", more))
		if !strings.Contains(string(got), more) || string(res) != `{"resultType":"input_required","requestState":"theirs-2"}` {
			t.Errorf("%q: sent %s, got %s", st, got, res)
		}
	}
}

func TestSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSealer([]byte(strings.Repeat("k", sealKeyLen)))
		text := s.seal(state{Kind: stateLogin, Server: "s", Request: "r"}, "alice", time.Minute)
		if st, err := s.open(text, "alice", "r"); err != nil || st.Server != "s" {
			t.Errorf("%+v, %v", st, err)
		}
		last := "A"
		if strings.HasSuffix(text, "A") {
			last = "B"
		}
		for name, try := range map[string][3]string{
			"another principal": {text, "bob", "r"}, "another request": {text, "alice", "r2"},
			"changed": {text[:len(text)-1] + last, "alice", "r"}, "cut off": {s.prefix + "AAAA", "alice", "r"},
			"no base64": {s.prefix + "!", "alice", "r"},
		} {
			if _, err := s.open(try[0], try[1], try[2]); !errors.Is(err, errBadState) {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(2 * time.Minute)
		if _, err := s.open(text, "alice", "r"); !errors.Is(err, errBadState) {
			t.Errorf("run out: %v", err)
		}
	})
}

// A retry is told from which tool it hears progress, with its own token.
func TestProgressAfterRetry(t *testing.T) {
	view := &script{do: func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
		note := func(n string) {
			params := []byte(`{"progressToken":"first","progress":` + n + `}`)
			r.OnNotification(mcp.Message{Method: mcp.MethodNotifyProgress, Params: params})
		}
		note("1")
		_, _ = r.OnRequest(ctx, mcp.MethodElicit, []byte(`{}`))
		note("2")
		return []byte(`{}`), nil
	}}
	g := New(view, nil)
	defer g.Close()
	post := func(token, more string) string {
		body := strings.Replace(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"`+more+`,`+askMeta+`}}`, `"_meta":{`, `"_meta":{"progressToken":"`+token+`",`, 1)
		w := send(t, g.Handler(), "POST", "/mcp", body, wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, mcp.MethodToolsCall, wire.HeaderName, "x")
		return w.Body.String()
	}
	first := post("first", "")
	if !strings.Contains(first, `"progressToken":"first","progress":1`) {
		t.Errorf("first: %s", first)
	}
	state := member(result(t, last(first)), "requestState")
	if second := post("second", `,"inputResponses":{"q1":{}},"requestState":`+string(state)); !strings.Contains(second, `"progressToken":"second","progress":2`) {
		t.Errorf("second: %s", second)
	}
}
