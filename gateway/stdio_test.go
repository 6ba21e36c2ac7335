package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// talk is a conversation over pipes with a gateway.
type talk struct {
	t     *testing.T
	in    *io.PipeWriter
	lines *bufio.Scanner
	done  chan error
}

func newTalk(t *testing.T, view *script) *talk {
	t.Helper()
	g := New(view, &Options{MaxBody: 1 << 16})
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	k := &talk{t: t, in: in, lines: bufio.NewScanner(out), done: make(chan error, 1)}
	k.lines.Buffer(nil, 1<<20)
	go func() {
		k.done <- g.ServeStdio(t.Context(), view, toServer, fromServer)
		_ = fromServer.Close()
	}()
	t.Cleanup(func() {
		_ = in.Close()
		g.Close()
	})
	return k
}

func (k *talk) say(lines ...string) {
	k.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(k.in, l+"\n"); err != nil {
			k.t.Fatal(err)
		}
	}
}

// hear returns the next message.
func (k *talk) hear() mcp.Message {
	k.t.Helper()
	if !k.lines.Scan() {
		k.t.Fatalf("no more: %v", k.lines.Err())
	}
	m, err := mcp.Parse([]byte(k.lines.Text()))
	if err != nil {
		k.t.Fatalf("%v: %s", err, k.lines.Text())
	}
	return m
}

func modernLine(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + goodMeta + `}}`
}

// Both eras on one pipe, side by side, and orderly answers to nonsense.
func TestStdioConversation(t *testing.T) {
	view := &script{do: func(_ context.Context, a surface.Agent, r mcp.Request) ([]byte, error) {
		return fmt.Appendf(nil, "{\n\"version\":%q,\r\n\"lane\":%t}", a.Version, a.Lane != ""), nil
	}}
	k := newTalk(t, view)
	for _, tt := range []struct{ say, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":3,"method":"server/discover"}`, `"code":-32602`},
		{`nonsense`, `"code":-32700`},
		{`{"jsonrpc":"2.0","id":4,"id":5,"method":"ping"}`, `"code":-32600`},
		{`[{"jsonrpc":"2.0","id":4,"method":"ping"}]`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":"big","method":"x","params":{"x":"` + strings.Repeat("x", 1<<16) + `"}}`, `"id":"big","error":{"code":-32600`},
		{modernLine(`"d"`, "server/discover", ""), `"supportedVersions":["2026-07-28"`},
		{modernLine(`6`, "prompts/list", ""), `"version":"2026-07-28",  "lane":false,"resultType":"complete","ttlMs":0,"cacheScope":"private"`},
		{strings.Replace(modernLine(`7`, "prompts/list", ""), "2026-07-28", "v9", 1), `"code":-32022`},
		{modernLine(`8`, "initialize", ""), `"code":-32601`},
		{`{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{}}}`, `"protocolVersion":"2025-03-26"`},
		{`{"jsonrpc":"2.0","id":10,"method":"initialize","params":{}}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":11,"method":"prompts/list"}`, `"version":"2025-03-26",  "lane":true`},
		{modernLine(`12`, "prompts/list", ""), `"version":"2026-07-28"`},
		{`[{"jsonrpc":"2.0","id":13,"method":"ping"}]`, `{"jsonrpc":"2.0","id":13,"result":{}}`},
		{`{"jsonrpc":"2.0","id":14,"method":"subscriptions/listen"}`, `"code":-32601`},
	} {
		k.say(tt.say)
		if got := string(k.hear().Raw); !strings.Contains(got, tt.want) {
			t.Errorf("%.80s\n got %s\nwant %s", tt.say, got, tt.want)
		}
	}
	_ = k.in.Close()
	if err := <-k.done; err != nil {
		t.Errorf("ended with %v", err)
	}
	if view.lanesClosed() != 1 {
		t.Error("the lane was not closed")
	}
}

// Requests run side by side; each era cancels with a notification, and the end of
// the input cancels the rest.
func TestStdioCancel(t *testing.T) {
	began, ended := make(chan string, 3), make(chan error, 3)
	view := &script{do: func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
		began <- jsonx.GetText(r.Params, "name")
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}}
	k := newTalk(t, view)
	k.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}}`)
	k.hear()
	k.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`, modernLine(`"m"`, "tools/call", `"name":"b",`), modernLine(`"n"`, "tools/call", `"name":"c",`))
	for range 3 {
		<-began
	}
	k.say(modernLine(`"m"`, "tools/call", `"name":"b",`))
	if m := k.hear(); m.Error == nil || !strings.Contains(string(m.Raw), "in use") {
		t.Errorf("an id in use: %s", m.Raw)
	}
	k.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if m := k.hear(); !strings.Contains(string(m.Raw), "in use") {
		t.Errorf("an id in use: %s", m.Raw)
	}
	k.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"m"}}`)
	for range 2 {
		if err := <-ended; !errors.Is(err, errCancelled) {
			t.Errorf("cancelled by %v", err)
		}
	}
	_ = k.in.Close()
	if err := <-ended; err == nil {
		t.Error("the end of the input cancels nothing")
	}
	if err := <-k.done; err != nil {
		t.Error(err)
	}
	if k.lines.Scan() {
		t.Errorf("an answer to a cancelled request: %s", k.lines.Text())
	}
}

// Subscriptions on a pipe are told apart by their id and end when they are
// cancelled.
func TestStdioListen(t *testing.T) {
	view := &script{}
	k := newTalk(t, view)
	k.say(modernLine(`5`, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`))
	if m := k.hear(); m.Method != mcp.MethodNotifyListenOK || !strings.Contains(string(m.Params), `"`+mcp.MetaSubscription+`":5`) {
		t.Fatalf("got %s", m.Raw)
	}
	on := func() func(mcp.Message) {
		for {
			view.mu.Lock()
			on := view.on
			view.mu.Unlock()
			if on != nil {
				return on
			}
		}
	}()
	on(mcp.Message{Method: mcp.MethodNotifyPrompts})
	on(mcp.Message{Method: mcp.MethodNotifyTools})
	if m := k.hear(); m.Method != mcp.MethodNotifyTools || !strings.Contains(string(m.Params), `"`+mcp.MetaSubscription+`":5`) {
		t.Errorf("got %s", m.Raw)
	}
	k.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`, modernLine(`6`, "server/discover", ""))
	if m := k.hear(); m.ID != mcp.IntID(6) {
		t.Errorf("got %s", m.Raw)
	}
}

// An agent that does not read any more is gone.
func TestStdioBrokenPipe(t *testing.T) {
	g := New(&script{}, nil)
	defer g.Close()
	in, w := io.Pipe()
	defer w.Close()
	done := make(chan error, 1)
	go func() { done <- g.ServeStdio(t.Context(), &script{}, in, brokenWriter{}) }()
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("ended with %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
