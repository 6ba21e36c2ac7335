package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// plain sends any HTTP request and returns status and body.
func plain(t *testing.T, method, url string, h http.Header, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(long(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = h
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// The life of a session, and what is refused around it.
func TestSessionLife(t *testing.T) {
	srv, _ := httpFake(t, "f", nil)
	other, _ := httpFake(t, "g", nil)
	s := newStack(t, nil, srv, other)
	url := s.url + "/servers/f/mcp"
	a := newAgent(t, url, mcp.LatestLegacy, `{}`)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	json := func(pairs ...string) http.Header {
		return header(append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, pairs...)...)
	}
	for _, tt := range []struct {
		name, method, url string
		header            http.Header
		body              string
		want              int
	}{
		{"alive", "POST", url, json("Mcp-Session-Id", a.session), ping, 200},
		{"with its version", "POST", url, json("Mcp-Session-Id", a.session, "MCP-Protocol-Version", "2025-11-25"), ping, 200},
		{"unknown version", "POST", url, json("Mcp-Session-Id", a.session, "MCP-Protocol-Version", "1999-01-01"), ping, 400},
		{"no session", "POST", url, json(), ping, 400},
		{"unknown session", "POST", url, json("Mcp-Session-Id", "nobody"), ping, 404},
		{"session of another endpoint", "POST", s.url + "/servers/g/mcp", json("Mcp-Session-Id", a.session), ping, 404},
		{"notification", "POST", url, json("Mcp-Session-Id", a.session), `{"jsonrpc":"2.0","method":"notifications/x"}`, 202},
		{"answer to nothing", "POST", url, json("Mcp-Session-Id", a.session), `{"jsonrpc":"2.0","id":99,"result":{}}`, 202},
		{"batch of another revision", "POST", url, json("Mcp-Session-Id", a.session), "[" + ping + "]", 400},
		{"stream that is not accepted", "GET", url, header("Accept", "application/json", "Mcp-Session-Id", a.session), "", 406},
		{"stream of an unknown session", "GET", url, header("Accept", "text/event-stream", "Mcp-Session-Id", "nobody"), "", 404},
		{"delete without a session", "DELETE", url, http.Header{}, "", 400},
		{"delete an unknown session", "DELETE", url, header("Mcp-Session-Id", "nobody"), "", 404},
		{"delete", "DELETE", url, header("Mcp-Session-Id", a.session), "", 204},
		{"after its end", "POST", url, json("Mcp-Session-Id", a.session), ping, 404},
		{"stream after its end", "GET", url, header("Accept", "text/event-stream", "Mcp-Session-Id", a.session), "", 404},
		{"delete again", "DELETE", url, header("Mcp-Session-Id", a.session), "", 404},
	} {
		if got, body := plain(t, tt.method, tt.url, tt.header, tt.body); got != tt.want {
			t.Errorf("%s: %d, want %d: %s", tt.name, got, tt.want, body)
		}
	}
}

func TestInitializeVersions(t *testing.T) {
	srv, _ := httpFake(t, "f", nil)
	s := newStack(t, nil, srv)
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25", "": "2025-11-25",
	} {
		_, body := plain(t, "POST", s.url+"/servers/f/mcp", header("Content-Type", "application/json"),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{}}}`, asked))
		v, _ := jsonx.Path([]byte(body), "result", "protocolVersion")
		if string(v) != `"`+want+`"` {
			t.Errorf("%q: %s", asked, body)
		}
	}
}

// Batches are part of one revision.
func TestBatch(t *testing.T) {
	srv, _ := httpFake(t, "f", nil)
	s := newStack(t, nil, srv)
	a := newAgent(t, s.url+"/servers/f/mcp", mcp.V20250326, `{}`)
	resp, body := a.post(long(t), []byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"echo","arguments":{"x":1}}}]`), nil)
	parts, err := mcp.SplitBatch(body)
	if resp.StatusCode != 200 || err != nil || len(parts) != 2 {
		t.Fatalf("%d %v: %s", resp.StatusCode, err, body)
	}
	if !strings.Contains(string(body), `{"jsonrpc":"2.0","id":1,"result":{}}`) || !strings.Contains(string(body), `"id":"b"`) {
		t.Errorf("got %s", body)
	}
	if resp, body := a.post(long(t), []byte(`[{"jsonrpc":"2.0","method":"notifications/x"}]`), nil); resp.StatusCode != 202 {
		t.Errorf("only notifications: %d %s", resp.StatusCode, body)
	}
}

// An agent of the legacy protocol cancels with a notification; the server hears of it and
// the request ends without an answer.
func TestLegacyCancel(t *testing.T) {
	for _, versions := range [][]string{versionsOf(true), versionsOf(false)} {
		srv, f := httpFake(t, "f", &fake.Options{Versions: versions})
		s := newStack(t, nil, srv)
		a := newAgent(t, s.url+"/servers/f/mcp", mcp.LatestLegacy, `{}`)
		message := a.message(mcp.MethodToolsCall, `{"name":"slow","arguments":{"ms":60000}}`)
		ended := make(chan int, 1)
		go func() {
			resp, err := client.Do(a.request(t.Context(), message, nil))
			if err != nil {
				ended <- 0
				return
			}
			_ = resp.Body.Close()
			ended <- resp.StatusCode
		}()
		if _, err := f.Ledger().WaitFor(long(t), func(e fake.Entry) bool { return e.Event == fake.EventRequest && e.Name == "slow" }); err != nil {
			t.Fatal(err)
		}
		a.post(long(t), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), nil) // another one: nothing happens
		a.post(long(t), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, a.next), nil)
		if _, err := f.Ledger().WaitFor(long(t), func(e fake.Entry) bool { return e.Event == fake.EventCancelled }); err != nil {
			t.Fatal(err)
		}
		if status := <-ended; status != http.StatusAccepted {
			t.Errorf("the cancelled request ended with %d", status)
		}
	}
}

// Changes reach the stream of an older agent, also those that came before it was
// open, and the stream ends with the session.
func TestLegacyStream(t *testing.T) {
	for _, versions := range [][]string{versionsOf(true), versionsOf(false)} {
		srv, f := httpFake(t, "f", &fake.Options{Versions: versions})
		s := newStack(t, nil, srv)
		a := newAgent(t, s.url+"/servers/f/mcp", mcp.LatestLegacy, `{}`)
		a.call(long(t), "echo", `{}`, nil)
		if got := a.do(long(t), mcp.MethodSubscribe, `{"uri":"fake://readme"}`, nil); got.err != nil {
			t.Fatal(got.err)
		}
		next := a.stream(long(t), nil)
		if _, err := f.Ledger().WaitFor(long(t), func(e fake.Entry) bool { return e.Event == fake.EventListening }); err != nil {
			t.Fatal(err)
		}
		f.SetTools(fake.DefaultTools()[:3])
		if m := next(mcp.MethodNotifyTools); m.Params != nil {
			t.Errorf("list_changed with %s", m.Params)
		}
		stop := again(t, func() { f.Touch("fake://readme") }) // a subscription may take a moment at the server
		if m := next(mcp.MethodNotifyUpdated); jsonx.GetText(m.Params, "uri") != "fake://readme" {
			t.Errorf("updated: %s", m.Params)
		}
		stop()
		if status, body := plain(t, "DELETE", a.url, header("Mcp-Session-Id", a.session), ""); status != 204 {
			t.Fatal(status, body)
		}
		if m := next("end"); m.Raw != nil {
			t.Errorf("after the end: %s", m.Raw)
		}
	}
}

// again does something every now and then until the returned function is called.
func again(t *testing.T, do func()) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			do()
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// stream opens the stream of a session. The returned function waits for a message
// of a method, of any for "", or for the end of the stream.
func (a *agent) stream(ctx context.Context, more http.Header) func(method string) mcp.Message {
	a.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set(wire.HeaderSession, a.session)
	for k, v := range more {
		r.Header[k] = v
	}
	resp, err := client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("X-Accel-Buffering") != "no" {
		a.t.Fatalf("stream: %d %v", resp.StatusCode, resp.Header)
	}
	read := a.messages(resp)
	return func(method string) mcp.Message {
		a.t.Helper()
		for {
			m, ok := read()
			switch {
			case !ok && method == "end":
				return m
			case !ok:
				a.t.Fatalf("the stream ended before %s", method)
			case m.Method == method || method == "":
				return m
			}
		}
	}
}

// An agent that lost its stream in the middle of a call comes back for the rest.
func TestResume(t *testing.T) {
	srv, f := httpFake(t, "f", nil)
	s := newStack(t, nil, srv)
	a := newAgent(t, s.url+"/servers/f/mcp", mcp.LatestLegacy, `{"elicitation":{}}`)
	ctx, leave := context.WithCancel(long(t))
	resp, err := client.Do(a.request(ctx, a.message(mcp.MethodToolsCall, `{"name":"slow","arguments":{"ms":200,"steps":2},"_meta":{"progressToken":1}}`), nil))
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	events := wire.NewEvents(resp.Body, 1<<20)
	for {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if last == "" && (len(e.Data) > 0 || e.Retry == 0 || !e.HasID) {
			t.Errorf("the first event is %+v", e)
		}
		last = e.ID
		if strings.Contains(string(e.Data), `"progress":1`) {
			break
		}
	}
	leave()
	resp.Body.Close()
	next := a.stream(long(t), http.Header{"Last-Event-Id": {last}})
	m := next(mcp.MethodNotifyProgress)
	if v, _ := jsonx.Get(m.Params, "progress"); string(v) != "2" {
		t.Errorf("went on with %s", m.Raw)
	}
	if m := next(""); m.Kind() != mcp.KindResponse || text(t, m.Result) != "done" {
		t.Errorf("got %s", m.Raw)
	}
	if n := len(f.Ledger().Events(fake.EventCancelled)); n != 0 {
		t.Error("leaving cancelled the call")
	}
}

// The transport of 2024-11-05: a stream that names where to post.
func TestOldSSE(t *testing.T) {
	srv, _ := httpFake(t, "f", nil)
	s := newStack(t, nil, srv)
	r, err := http.NewRequestWithContext(long(t), http.MethodGet, s.url+"/servers/f/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := wire.NewEvents(bufio.NewReader(resp.Body), 1<<20)
	first, err := events.Next()
	if err != nil || first.Type != "endpoint" || !strings.HasPrefix(string(first.Data), "/servers/f/mcp?sessionId=") {
		t.Fatalf("%v: %+v", err, first)
	}
	post := func(message string) mcp.Message {
		t.Helper()
		if status, body := plain(t, "POST", s.url+string(first.Data), header("Content-Type", "application/json"), message); status != 202 {
			t.Fatalf("%d %s", status, body)
		}
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		m, err := mcp.Parse(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"o","version":"1"}}}`
	if m := post(hello); jsonx.GetText(m.Result, "protocolVersion") != "2024-11-05" {
		t.Fatalf("initialize: %s", m.Raw)
	}
	if m := post(hello); m.Error == nil {
		t.Errorf("twice: %s", m.Raw)
	}
	if m := post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`); text(t, m.Result) != `{"a":1}` {
		t.Errorf("call: %s", m.Raw)
	}
	if status, _ := plain(t, "POST", s.url+"/servers/f/mcp?sessionId=nobody", header("Content-Type", "application/json"), hello); status != 404 {
		t.Errorf("unknown session: %d", status)
	}
}
