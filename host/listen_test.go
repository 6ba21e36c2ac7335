package host

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/mcp"
)

func TestListenModern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hear := make(chan func(mcp.Message), 1)
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{version: mcp.Latest, caps: `{"tools":{"listChanged":true}}`, listen: func(ctx context.Context, on func(mcp.Message)) error {
				hear <- on
				<-ctx.Done()
				return ctx.Err()
			}}, nil
		}}
		var forwarded atomic.Int32
		h := s.open(t, &Options{OnNotification: func(k Key, m mcp.Message) { forwarded.Add(1) }})
		_, _ = h.Tools(t.Context(), keyA)
		_, _ = h.Tools(t.Context(), keyA)
		if n := s.last().lists.Load(); n != 1 {
			t.Fatalf("%d lists", n)
		}
		(<-hear)(mcp.Message{Method: mcp.MethodNotifyTools})
		if c, _ := h.Cached(keyA); !c.Stale || forwarded.Load() != 1 {
			t.Errorf("stale %v, forwarded %d", c.Stale, forwarded.Load())
		}
		_, _ = h.Tools(t.Context(), keyA)
		if n := s.last().lists.Load(); n != 2 {
			t.Errorf("%d lists after a change", n)
		}
	})
}

func TestChangesBeforeTheSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ack := make(chan struct{})
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{version: mcp.Latest, caps: `{"tools":{"listChanged":true}}`, ack: ack}, nil
		}}
		h := s.open(t, nil)
		tools := func(want int32, when string) {
			t.Helper()
			if _, err := h.Tools(t.Context(), keyA); err != nil {
				t.Fatal(err)
			}
			if n := s.last().lists.Load(); n != want {
				t.Errorf("%s: %d lists, want %d", when, n, want)
			}
		}
		tools(1, "first")
		tools(2, "while nothing is announced")
		close(ack)
		synctest.Wait()
		if c, _ := h.Cached(keyA); !c.Stale {
			t.Error("a list from before the subscription is trusted")
		}
		tools(3, "after the acknowledgement")
		tools(3, "while changes are announced")
	})
}

func TestChangesWithoutTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lose := make(chan struct{})
		s := &stage{next: func(context.Context, config.Server, int) (*double, error) {
			return &double{version: mcp.Latest, caps: `{"tools":{"listChanged":true}}`, lose: lose}, nil
		}}
		h := s.open(t, nil)
		for i, want := range []int32{1, 1, 2, 3} {
			if i == 2 {
				lose <- struct{}{}
				synctest.Wait()
			}
			if _, err := h.Tools(t.Context(), keyA); err != nil {
				t.Fatal(err)
			}
			if n := s.last().lists.Load(); n != want {
				t.Errorf("list %d: the server was asked %d times, want %d", i+1, n, want)
			}
		}
	})
}
