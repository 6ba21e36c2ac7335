package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// An agent of the stateless protocol that is killed in the middle of a call: the server
// sees the cancel, whatever its own era and transport, and whether or not the agent
// could have been asked something.
func TestKilledAgentCancelsStdio(t *testing.T) {
	for _, caps := range []string{`{}`, canAll} {
		for _, versions := range []string{mcp.Latest, strings.Join(versionsOf(false), ",")} {
			srv, ledger := stdioFake(t, "f", "--versions", versions)
			s := newStack(t, nil, srv)
			killMidCall(t, s, "f", caps, func(event string) {
				t.Helper()
				if _, err := fake.WatchLedger(long(t), ledger, func(e fake.Entry) bool { return e.Event == event && (e.Name == "slow" || event != fake.EventRequest) }); err != nil {
					t.Fatalf("%s: %v", event, err)
				}
			})
		}
	}
}

// killMidCall begins a call, waits until the server has it, kills the connection,
// and waits for the server to see the end. No clock is involved.
func killMidCall(t *testing.T, s *stack, server, caps string, wait func(event string)) {
	t.Helper()
	a := newAgent(t, s.url+"/servers/"+server+"/mcp", mcp.Latest, caps)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	gone := make(chan struct{})
	request := a.request(ctx, a.message(mcp.MethodToolsCall, `{"name":"slow","arguments":{"ms":600000}}`), nil)
	go func() {
		defer close(gone)
		if resp, err := client.Do(request); err == nil {
			resp.Body.Close()
			t.Errorf("answered with %d", resp.StatusCode)
		}
	}()
	wait(fake.EventRequest)
	kill()
	<-gone
	wait(fake.EventCancelled)
}

func TestKilledAgentCancelsHTTP(t *testing.T) {
	for _, caps := range []string{`{}`, canAll} {
		for _, modern := range []bool{true, false} {
			srv, f := httpFake(t, "f", &fake.Options{Versions: versionsOf(modern)})
			s := newStack(t, nil, srv)
			killMidCall(t, s, "f", caps, func(event string) {
				t.Helper()
				if _, err := f.Ledger().WaitFor(long(t), func(e fake.Entry) bool { return e.Event == event && (e.Name == "slow" || event != fake.EventRequest) }); err != nil {
					t.Fatalf("modern %t: %s: %v", modern, event, err)
				}
			})
		}
	}
}

// subscriptions/listen: acknowledged first, every message carries the id, only what
// was asked for comes, and the end of the gateway is told.
func TestListen(t *testing.T) {
	for _, modern := range []bool{true, false} {
		srv, f := httpFake(t, "f", &fake.Options{Versions: versionsOf(modern)})
		s := newStack(t, nil, srv)
		a := newAgent(t, s.url+"/servers/f/mcp", mcp.Latest, `{}`)
		a.call(long(t), "echo", `{}`, nil)
		message := mcp.AppendRequest(nil, mcp.TextID("sub"), mcp.MethodListen, wire.EditMeta(
			[]byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["fake://readme"],"x":true}}`),
			jsonx.Edit{Key: mcp.MetaVersion, Value: jsonx.Quote(mcp.Latest)}, jsonx.Edit{Key: mcp.MetaClientCaps, Value: []byte(`{}`)}))
		resp, err := client.Do(a.request(long(t), message, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		read := a.messages(resp)
		next := func() mcp.Message {
			t.Helper()
			m, ok := read()
			if !ok {
				t.Fatal("the stream ended")
			}
			meta, _ := jsonx.Get(m.Params, "_meta")
			if m.Kind() == mcp.KindResponse {
				meta, _ = jsonx.Get(m.Result, "_meta")
			}
			if jsonx.GetText(meta, mcp.MetaSubscription) != "sub" {
				t.Errorf("without the id: %s", m.Raw)
			}
			return m
		}
		ack := next()
		if got, _ := jsonx.Get(ack.Params, "notifications"); ack.Method != mcp.MethodNotifyListenOK ||
			string(got) != `{"toolsListChanged":true,"resourceSubscriptions":["fake://readme"]}` {
			t.Fatalf("first: %s", ack.Raw)
		}
		f.Touch("fake://readme")
		f.SetTools(fake.DefaultTools()[:5])
		for touched, changed := false, false; !touched || !changed; {
			m := next()
			touched = touched || m.Method == mcp.MethodNotifyUpdated
			changed = changed || m.Method == mcp.MethodNotifyTools
		}
		s.gateway.Drain()
		for ended := false; !ended; {
			m := next()
			ended = m.Kind() == mcp.KindResponse
			if ended && (mcp.ResultType(m.Result) != mcp.ResultComplete || m.ID != mcp.TextID("sub")) {
				t.Errorf("ended with %s", m.Raw)
			}
		}
		if _, ok := read(); ok {
			t.Error("more after the end")
		}
	}
}

func TestListenNeedsAStream(t *testing.T) {
	srv, _ := httpFake(t, "f", nil)
	s := newStack(t, nil, srv)
	a := newAgent(t, s.url+"/servers/f/mcp", mcp.Latest, `{}`)
	r := a.request(long(t), a.message(mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`), header("Accept", "application/json"))
	if got := a.read(long(t), r, nil); got.err == nil || got.err.Code != mcp.CodeInvalidRequest {
		t.Errorf("%d %v", got.status, got.err)
	}
	for _, params := range []string{`{}`, `{"notifications":[]}`, `{"notifications":{"resourceSubscriptions":[1]}}`, `{"notifications":{"resourceSubscriptions":"x"}}`} {
		if got := a.do(long(t), mcp.MethodListen, params, nil); got.err == nil || got.err.Code != mcp.CodeInvalidParams {
			t.Errorf("%s: %v", params, got.err)
		}
	}
}

// Requests in flight finish while the gateway ends; nothing new is accepted.
func TestDrain(t *testing.T) {
	srv, f := httpFake(t, "f", nil)
	s := newStack(t, nil, srv)
	a := newAgent(t, s.url+"/servers/f/mcp", mcp.Latest, `{}`)
	old := newAgent(t, s.url+"/servers/f/mcp", mcp.LatestLegacy, `{}`)
	next := old.stream(long(t), nil)
	done := make(chan string, 1)
	request := a.request(long(t), a.message(mcp.MethodToolsCall, `{"name":"slow","arguments":{"ms":300}}`), nil)
	go func() {
		resp, err := client.Do(request)
		if err != nil {
			done <- err.Error()
			return
		}
		defer resp.Body.Close()
		m, _ := a.messages(resp)()
		done <- string(m.Result)
	}()
	if _, err := f.Ledger().WaitFor(long(t), func(e fake.Entry) bool { return e.Event == fake.EventRequest && e.Name == "slow" }); err != nil {
		t.Fatal(err)
	}
	s.stop()
	next("end")
	if got := <-done; !strings.Contains(got, "done") {
		t.Errorf("the in-flight call ended with %s", got)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	s.done <- nil // for the clean-up
	if resp, err := client.Do(a.request(long(t), a.message(mcp.MethodToolsList, `{}`), nil)); err == nil {
		resp.Body.Close()
		t.Errorf("still served: %d", resp.StatusCode)
	}
}

// A call that does not end within the grace is cut off.
func TestDrainCutsOff(t *testing.T) {
	srv, f := httpFake(t, "f", nil)
	s := newStack(t, &gateway.Options{Grace: 50 * time.Millisecond}, srv)
	for _, a := range []*agent{
		newAgent(t, s.url+"/servers/f/mcp", mcp.Latest, `{}`), newAgent(t, s.url+"/servers/f/mcp", mcp.Latest, canAll),
		newAgent(t, s.url+"/servers/f/mcp", mcp.LatestLegacy, `{}`),
	} {
		request := a.request(long(t), a.message(mcp.MethodToolsCall, `{"name":"slow","arguments":{"ms":600000}}`), nil)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if resp, err := client.Do(request); err == nil {
				resp.Body.Close()
			}
		}()
		defer func() { <-ended }()
	}
	for seen := 0; seen < 3; seen = len(f.Ledger().Calls("slow")) {
		if _, err := f.Ledger().WaitFor(long(t), func(e fake.Entry) bool { return e.Name == "slow" && len(f.Ledger().Calls("slow")) == 3 }); err != nil {
			t.Fatal(err)
		}
	}
	s.stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	s.done <- nil
}

// A server that is down, or dies in the middle of a call, harms no other session.
func TestDeadBackendHarmsNobody(t *testing.T) {
	good, _ := httpFake(t, "good", nil)
	crashing, _ := stdioFake(t, "crashing")
	gone, f := httpFake(t, "gone", nil)
	f.Set("silent")
	s := newStack(t, nil, good, crashing, gone)
	for _, version := range []string{mcp.Latest, mcp.LatestLegacy} {
		a := newAgent(t, s.url+"/direct/mcp", version, canAll)
		if got := a.call(long(t), "good__echo", `{"a":1}`, nil); text(t, got.result) != `{"a":1}` {
			t.Errorf("%s: %s", version, got.result)
		}
		waiting := a.request(long(t), a.message(mcp.MethodToolsCall, `{"name":"good__slow","arguments":{"ms":200}}`), nil)
		done := make(chan said, 1)
		go func() { done <- a.read(t.Context(), waiting, nil) }()
		crashed := a.call(long(t), "crashing__crash", `{}`, nil)
		if !strings.Contains(string(crashed.result), `"isError":true`) {
			t.Errorf("%s: crash: %s", version, crashed.result)
		}
		if got := <-done; got.err != nil || text(t, got.result) != "done" {
			t.Errorf("%s: the other call: %v %s", version, got.err, got.result)
		}
		another := newAgent(t, s.url+"/direct/mcp", version, canAll)
		if got := another.do(long(t), mcp.MethodToolsList, `{}`, nil); !strings.Contains(string(got.result), "good__echo") {
			t.Errorf("%s: a new session sees %.200s", version, got.result)
		}
		if got := another.call(long(t), "good__echo", `{"b":1}`, nil); text(t, got.result) != `{"b":1}` {
			t.Errorf("%s: a new session: %s", version, got.result)
		}
	}
}

// What the gateway refuses for want of room is told with 429, and what is in flight
// goes on.
func TestTooManyCalls(t *testing.T) {
	release := make(chan struct{})
	held := fake.Tool{Def: []byte(`{"name":"held","inputSchema":{"type":"object"}}`), Handle: func(ctx context.Context, _ *fake.Call) ([]byte, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return fake.TextResult("done"), nil
	}}
	srv, f := httpFake(t, "f", &fake.Options{Tools: append(fake.DefaultTools(), held)})
	s := newStack(t, &gateway.Options{MaxCalls: 1}, srv)
	a := newAgent(t, s.url+"/servers/f/mcp", mcp.Latest, `{}`)
	a.call(long(t), "echo", `{}`, nil)
	request := a.request(long(t), a.message(mcp.MethodToolsCall, `{"name":"held","arguments":{}}`), nil)
	done := make(chan said, 1)
	go func() { done <- a.read(t.Context(), request, nil) }()
	if _, err := f.Ledger().WaitFor(long(t), func(e fake.Entry) bool { return e.Event == fake.EventRequest && e.Name == "held" }); err != nil {
		t.Fatal(err)
	}
	resp, _ := a.post(long(t), a.message(mcp.MethodToolsList, `{}`), nil)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	close(release)
	if got := <-done; text(t, got.result) != "done" {
		t.Errorf("the in-flight call: %s", got.result)
	}
	if n := s.gateway.Stats().Limited; n != 1 {
		t.Errorf("%d counted", n)
	}
}
