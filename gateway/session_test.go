package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// hello begins a session and returns its id.
func hello(t *testing.T, h http.Handler) string {
	t.Helper()
	w := send(t, h, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}},"clientInfo":{}}}`)
	return w.Header().Get(wire.HeaderSession)
}

func pinged(t *testing.T, h http.Handler, session string) int {
	t.Helper()
	return send(t, h, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, wire.HeaderSession, session).Code
}

// A session nobody uses ends; one in use does not.
func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		view := &script{do: func(ctx context.Context, _ surface.Agent, _ mcp.Request) ([]byte, error) {
			<-slow
			return []byte(`{}`), nil
		}}
		g := New(view, &Options{SessionIdle: time.Hour})
		defer g.Close()
		h := g.Handler()
		idle, used, busy := hello(t, h), hello(t, h), hello(t, h)
		done := make(chan int, 1)
		go func() {
			done <- send(t, h, "POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`, wire.HeaderSession, busy).Code
		}()
		time.Sleep(50 * time.Minute)
		if code := pinged(t, h, used); code != 200 {
			t.Errorf("in use: %d", code)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if code := pinged(t, h, idle); code != 404 || view.lanesClosed() != 1 {
			t.Errorf("idle: %d, %d lanes closed", code, view.lanesClosed())
		}
		if code := pinged(t, h, used); code != 200 {
			t.Errorf("used 20 minutes ago: %d", code)
		}
		if code := pinged(t, h, busy); code != 200 {
			t.Errorf("with a request in flight: %d", code)
		}
		close(slow)
		if code := <-done; code != 200 {
			t.Errorf("the request: %d", code)
		}
	})
}

// When there is no room the longest idle session goes; when all are in use the new
// one has to wait.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(&script{}, &Options{MaxSessions: 8}) // two per principal
		defer g.Close()
		h := g.Handler()
		first, second := hello(t, h), hello(t, h)
		if third := hello(t, h); third != "" {
			t.Error("a third one although both are fresh")
		}
		time.Sleep(2 * time.Minute)
		if code := pinged(t, h, first); code != 200 {
			t.Fatal(code)
		}
		third := hello(t, h)
		if third == "" || pinged(t, h, second) != 404 || pinged(t, h, first) != 200 || pinged(t, h, third) != 200 {
			t.Error("the wrong one went")
		}
		if n := g.Stats().Sessions; n != 2 {
			t.Errorf("%d sessions", n)
		}
	})
}

// Questions go to the agent that a call belongs to; what cannot be asked is refused
// at once, and a question is taken back when nobody waits for it any more.
func TestAskOverSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bad *mcp.Error
		view := &script{do: func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
			_, bad = r.OnRequest(ctx, mcp.MethodElicit, []byte(`{}`)) // not declared
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, late := r.OnRequest(short, mcp.MethodSample, []byte(`{}`))
			return fmt.Appendf(nil, `{"late":%q}`, late.Message), nil
		}}
		g := New(view, nil)
		defer g.Close()
		h := g.Handler()
		w := send(t, h, "POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`, wire.HeaderSession, hello(t, h))
		if bad == nil || bad.Code != mcp.CodeMethodNotFound {
			t.Errorf("elicitation: %v", bad)
		}
		body := w.Body.String()
		asked := strings.Index(body, `"method":"sampling/createMessage"`)
		taken := strings.Index(body, `"method":"notifications/cancelled","params":{"requestId":1`)
		if asked < 0 || taken < asked || !strings.Contains(body, `"late":"context deadline exceeded"`) {
			t.Errorf("got %s", body)
		}
	})
}

// A quiet call becomes a stream with signs of life; a quick one does not.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := &script{do: func(ctx context.Context, _ surface.Agent, _ mcp.Request) ([]byte, error) {
			time.Sleep(40 * time.Second)
			return []byte(`{}`), nil
		}}
		g := New(view, nil)
		defer g.Close()
		body := `{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{` + goodMeta + `}}`
		w := send(t, g.Handler(), "POST", "/mcp", body, wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, mcp.MethodPromptsList)
		if w.Header().Get("Content-Type") != "text/event-stream" || strings.Count(w.Body.String(), ":\n\n") != 2 || !strings.Contains(w.Body.String(), `data: {"jsonrpc":"2.0","id":1,"result"`) {
			t.Errorf("%v %s", w.Header(), w.Body)
		}
		w = send(t, g.Handler(), "POST", "/mcp", body, wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, mcp.MethodPromptsList, "Accept", "", "Accept", "application/json")
		if w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("an agent that takes no streams: %v", w.Header())
		}
	})
}
