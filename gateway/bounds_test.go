package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// post is a request with a body of any length.
func post(ctx context.Context, name string, length int64, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(ctx, "POST", "/mcp", body)
	r.Host, r.ContentLength = "localhost", length
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+name)
	return r
}

// Large bodies that come slowly are bounded in bytes for a principal and for all, and
// small requests pass beside them.
func TestLargeBodiesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(&script{}, &Options{Auth: byName{}})
		defer g.Close()
		ctx, leave := context.WithCancel(t.Context())
		status := make(chan int, 100)
		send := func(name string, length int64) {
			r, w := io.Pipe()
			context.AfterFunc(ctx, func() { _ = w.CloseWithError(io.ErrUnexpectedEOF) })
			go func() {
				answer := httptest.NewRecorder()
				g.Handler().ServeHTTP(answer, post(ctx, name, length, r))
				status <- answer.Code
			}()
			synctest.Wait()
		}
		for range limit.BodyBytesPerPrincipal / limit.RequestBytes {
			send("greedy", limit.RequestBytes)
		}
		if len(status) != 0 {
			t.Fatalf("refused with %d within the limit", <-status)
		}
		send("greedy", limit.RequestBytes)
		send("greedy", -1)
		for range 2 {
			if code := <-status; code != http.StatusTooManyRequests {
				t.Errorf("a body above the share got %d", code)
			}
		}
		send("other", limit.RequestBytes)
		if len(status) != 0 {
			t.Errorf("another principal was refused with %d", <-status)
		}
		w := httptest.NewRecorder()
		if g.Handler().ServeHTTP(w, post(t.Context(), "greedy", 2, strings.NewReader("{}"))); w.Code == http.StatusTooManyRequests {
			t.Error("a small request was refused")
		}
		leave()
		synctest.Wait()
		if n := g.bodies.Size(); n != 0 {
			t.Errorf("%d bytes are still counted", n)
		}
	})
}

// What a client says about itself is kept with its session, so it is bounded.
func TestClientDetailsAreBounded(t *testing.T) {
	g := New(&script{}, nil)
	defer g.Close()
	huge := `{"x":"` + strings.Repeat("x", limit.ClientDetailBytes) + `"}`
	for _, detail := range []string{`"capabilities":` + huge, `"clientInfo":` + huge} {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` + detail + `}}`
		if w := send(t, g.Handler(), "POST", "/mcp", body); errorCode(last(w.Body.String())) != mcp.CodeInvalidParams || w.Header().Get(wire.HeaderSession) != "" {
			t.Errorf("initialize: %d %.200s", w.Code, w.Body)
		}
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"` + mcp.MetaVersion + `":"2026-07-28","` + mcp.MetaClientCaps + `":` + huge + `}}}`
	w := send(t, g.Handler(), "POST", "/mcp", body, wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, mcp.MethodToolsList)
	if errorCode(last(w.Body.String())) != mcp.CodeInvalidParams {
		t.Errorf("tools/list: %d %.200s", w.Code, w.Body)
	}
	if n := g.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// A principal holds a bounded number of streams open, of every kind.
func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(&script{}, &Options{MaxStreams: 3})
		defer g.Close()
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan int, 10)
		for range 5 {
			r := httptest.NewRequestWithContext(ctx, "GET", "/mcp", nil)
			r.Host = "localhost"
			r.Header.Set("Accept", "text/event-stream")
			go func() {
				w := httptest.NewRecorder()
				g.Handler().ServeHTTP(w, r)
				ended <- w.Code
			}()
			synctest.Wait()
		}
		if n := len(ended); n != 2 {
			t.Fatalf("%d of 5 were refused", n)
		}
		for range 2 {
			if code := <-ended; code != http.StatusTooManyRequests {
				t.Errorf("refused with %d", code)
			}
		}
		leave()
		synctest.Wait()
		if n := g.limits.of(authn.LocalPrincipal).streams.Load(); n != 0 {
			t.Errorf("%d streams are still counted", n)
		}
	})
}

// What waits for sessions that nobody reads, and what streams are resumed from, is
// bounded over all sessions, and given back when a session ends.
func TestSessionsHoldBoundedBytes(t *testing.T) {
	g := New(&script{}, nil)
	defer g.Close()
	message := bytes.Repeat([]byte("x"), 1<<20)
	var all []*session
	for range 20 {
		id := authn.Identity{Principal: authn.LocalPrincipal}
		s := g.newSession(id, &endpoint{key: "/mcp", view: &script{}}, stream.NewQueue(&g.held, id.Principal), nil)
		for range 4 {
			s.out.Send(message)
		}
		for range 4 {
			s.tracks.Begin(mcp.V20251125).Add(message, true)
		}
		all = append(all, s)
	}
	if n := g.held.Size(); n > limit.HeldBytesPerPrincipal || n < limit.HeldBytesPerPrincipal/2 {
		t.Errorf("%d bytes are held", n)
	}
	replay, _ := all[19].tracks.Find("1-0")
	frames, _, done := replay.Since(0)
	if len(frames) != 0 || !done {
		t.Errorf("a stream without room has %d events, done %t", len(frames), done)
	}
	for _, s := range all {
		s.close(errEnded)
	}
	if n := g.held.Size(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}

// Large answers that wait for clients that do not read are bounded.
func TestLargeAnswersAreBounded(t *testing.T) {
	large := []byte(`{"x":"` + strings.Repeat("x", 8<<20) + `"}`)
	g := New(&script{do: func(context.Context, surface.Agent, mcp.Request) ([]byte, error) { return large, nil }}, nil)
	defer g.Close()
	if got := callTool(t, g.Handler(), "x", ""); errorCode(got) != 0 {
		t.Fatalf("one answer: %.200s", got)
	}
	g.held.Take(authn.LocalPrincipal, limit.HeldBytesPerPrincipal-4<<20) // others wait to be read
	if got := callTool(t, g.Handler(), "x", ""); errorCode(got) != mcp.CodeInternal {
		t.Errorf("an answer without room: %.200s", got)
	}
	if n := g.held.Size(); n != limit.HeldBytesPerPrincipal-4<<20 {
		t.Errorf("%d bytes are held", n)
	}
}
