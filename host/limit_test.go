package host

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// A server that says a thousand times a second that its tools changed is not passed on
// a thousand times a second, and the last change is not lost.
func TestListChangesAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var passed, updated atomic.Int64
		s := &stage{}
		h := s.open(t, &Options{OnNotification: func(_ Key, m mcp.Message) {
			if m.Method == mcp.MethodNotifyTools {
				passed.Add(1)
			} else {
				updated.Add(1)
			}
		}})
		if _, err := h.Do(t.Context(), keyA, callTool("x", nil)); err != nil {
			t.Fatal(err)
		}
		heard := s.opts[0].OnNotification
		heard(mcp.Message{Method: mcp.MethodNotifyTools})
		if passed.Load() != 1 {
			t.Error("the first change was held back")
		}
		const length = 10 * time.Second
		for range 10_000 {
			heard(mcp.Message{Method: mcp.MethodNotifyTools})
			heard(mcp.Message{Method: mcp.MethodNotifyUpdated})
			time.Sleep(length / 10_000)
		}
		if n, most := passed.Load(), int64(length/limit.ServerListChanges)+1; n > most || n < most/2 {
			t.Errorf("%d changes were passed on, want about %d", n, most)
		}
		if n := updated.Load(); n != 10_000 {
			t.Errorf("%d updates were passed on", n)
		}
		before := passed.Load()
		heard(mcp.Message{Method: mcp.MethodNotifyTools})
		time.Sleep(2 * limit.ServerListChanges)
		synctest.Wait()
		if passed.Load() <= before {
			t.Error("the last change was lost")
		}
	})
}

// A server that floods its connection with pings and accepts no answer loses the
// connection, it costs a restart, and the status says why.
func TestFloodCountsAsFailure(t *testing.T) {
	_, url := fakeURL(t, &fake.Options{
		Versions: []string{mcp.LatestLegacy}, Switches: []string{"ping-flood=1000;on=GET", "hold-answers"}, Ledger: fake.DiscardLedger(),
	})
	h := realHost(t, Options{})
	mustSpawn(t, h, urlServer("a", url))
	if _, err := h.Do(t.Context(), keyA, callTool("echo", nonce(1))); err != nil {
		t.Log(err) // the flood may be faster
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	for st := stateOf(t, h, "a"); st.RestartCount == 0; st = stateOf(t, h, "a") {
		if err := retry.Sleep(ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("nothing was charged: %+v", st)
		}
	}
	u, err := h.unit(keyA)
	if err != nil {
		t.Fatal(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	wantErr(t, u.lastErr, upstream.ErrLimit)
}
