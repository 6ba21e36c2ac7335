package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// slow is a view whose calls take a second each, and count how many run at once.
type slow struct {
	script
	answer []byte

	mu           sync.Mutex // guards what follows
	running, top int
	calls        int
}

func newSlow() *slow {
	s := &slow{answer: []byte(`{"content":[]}`)}
	s.do = func(ctx context.Context, _ surface.Agent, _ mcp.Request) ([]byte, error) {
		s.mu.Lock()
		s.calls++
		s.running++
		s.top = max(s.top, s.running)
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running--
		}()
		select {
		case <-time.After(time.Second):
			return s.answer, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s
}

func (s *slow) Auto() (surface.View, surface.Explanation) { return s, surface.Explanation{} }

func (s *slow) counts() (calls, top int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.top
}

// batchSession opens a session of the revision that has batches.
func batchSession(t *testing.T, h http.Handler) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + mcp.V20250326 + `","capabilities":{},"clientInfo":{}}}`
	w := send(t, h, "POST", "/mcp", body)
	id := w.Header().Get(wire.HeaderSession)
	if id == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return id
}

func batchOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, i+1)
	}
	return "[" + b.String()[1:] + "]"
}

// Every request of a batch takes one of the principal's slots until it ends.
func TestBatchTakesSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := newSlow()
		g := New(view, &Options{MaxCalls: 4})
		defer g.Close()
		id := batchSession(t, g.Handler())
		w := send(t, g.Handler(), "POST", "/mcp", batchOf(90), wire.HeaderSession, id)
		parts, err := mcp.SplitBatch(last(w.Body.String()))
		if err != nil || len(parts) != 90 {
			t.Errorf("%d answers, %v: %.200s", len(parts), err, w.Body)
		}
		if calls, top := view.counts(); calls != 90 || top > 4 {
			t.Errorf("%d calls, %d at once", calls, top)
		}
		if n := g.limits.of(authn.LocalPrincipal).calls.Load(); n != 0 {
			t.Errorf("%d slots are still taken", n)
		}
	})
}

// When the client leaves, what runs keeps its slot until it ends, and the rest of the
// batch does not start.
func TestBatchKeepsSlotsWhenTheClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := newSlow()
		g := New(view, &Options{MaxCalls: 4})
		defer g.Close()
		id := batchSession(t, g.Handler())
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "POST", "/mcp", strings.NewReader(batchOf(50)))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(wire.HeaderSession, id)
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.Handler().ServeHTTP(httptest.NewRecorder(), r)
		}()
		time.Sleep(500 * time.Millisecond)
		leave()
		synctest.Wait()
		if w := send(t, g.Handler(), "POST", "/mcp", batchOf(1), wire.HeaderSession, id); w.Code != http.StatusTooManyRequests {
			t.Errorf("a request beside four that run got %d", w.Code)
		}
		<-done
		if calls, top := view.counts(); calls != 4 || top != 4 {
			t.Errorf("%d calls, %d at once", calls, top)
		}
	})
}

// A batch is bounded in messages and in the bytes of its answers.
func TestBatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := newSlow()
		g := New(view, nil)
		defer g.Close()
		id := batchSession(t, g.Handler())
		if w := send(t, g.Handler(), "POST", "/mcp", batchOf(limit.BatchMessages+1), wire.HeaderSession, id); w.Code != http.StatusBadRequest {
			t.Errorf("a batch that is too long got %d", w.Code)
		}
		if calls, _ := view.counts(); calls != 0 {
			t.Errorf("%d calls of it were made", calls)
		}
		view.answer = append(append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), limit.BatchAnswerBytes/8)...), `"}`...)
		w := send(t, g.Handler(), "POST", "/mcp", batchOf(20), wire.HeaderSession, id)
		if w.Body.Len() > limit.BatchAnswerBytes+20*200 {
			t.Errorf("the answers take %d bytes", w.Body.Len())
		}
		parts, err := mcp.SplitBatch(last(w.Body.String()))
		if err != nil || len(parts) != 20 || errorCode(parts[19]) != mcp.CodeInternal {
			t.Errorf("%d answers, %v; the last is %.200s", len(parts), err, parts[len(parts)-1])
		}
	})
}

// A batch of a principal with many slots does not take all of them.
func TestBatchWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := newSlow()
		g := New(view, nil)
		defer g.Close()
		id := batchSession(t, g.Handler())
		send(t, g.Handler(), "POST", "/mcp", batchOf(50), wire.HeaderSession, id)
		if calls, top := view.counts(); calls != 50 || top != limit.BatchWorkers {
			t.Errorf("%d calls, %d at once", calls, top)
		}
	})
}
