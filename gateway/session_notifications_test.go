package gateway

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// stuck is a view whose server does not read notifications until it is released.
type stuck struct {
	script
	release chan struct{}
	heard   atomic.Int64
}

func (s *stuck) Auto() (surface.View, surface.Explanation) { return s, surface.Explanation{} }

func (s *stuck) Notify(ctx context.Context, _ surface.Agent, _ string, _ []byte) error {
	select {
	case <-s.release:
		s.heard.Add(1)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func notification(method string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":{}}`
}

// flood sends n notifications of a session, spread over more than their rate.
func flood(t *testing.T, h http.Handler, id, method string, n int) {
	t.Helper()
	for i := range n {
		if i%limit.SessionNotificationsPerSecond == 0 {
			<-time.After(2 * time.Second) // in the caller's bubble
		}
		if w := send(t, h, "POST", "/mcp", notification(method), wire.HeaderSession, id); w.Code != http.StatusAccepted {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

// A flood of notifications to a server that does not read costs a bounded queue and
// one goroutine.
func TestNotificationQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := &stuck{release: make(chan struct{})}
		g := New(view, nil)
		defer g.Close()
		id := batchSession(t, g.Handler())
		synctest.Wait()
		before := runtime.NumGoroutine()
		flood(t, g.Handler(), id, mcp.MethodNotifyRoots, 500)
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 2 {
			t.Errorf("500 notifications cost %d goroutines", n)
		}
		close(view.release)
		synctest.Wait()
		if n := view.heard.Load(); n < limit.SessionNotifications || n > limit.SessionNotifications+1 {
			t.Errorf("%d were passed on", n)
		}
		flood(t, g.Handler(), id, mcp.MethodNotifyRoots, 1)
		synctest.Wait()
		if n := view.heard.Load(); n > limit.SessionNotifications+2 || n <= limit.SessionNotifications {
			t.Errorf("%d were passed on with the one after the flood", n)
		}
	})
}

// A session may send so many notifications a second; what comes on top is dropped.
func TestNotificationRateIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := &stuck{release: make(chan struct{})}
		close(view.release)
		g := New(view, nil)
		defer g.Close()
		id := batchSession(t, g.Handler())
		many := func() {
			for range 4 {
				messages := strings.Repeat(","+notification(mcp.MethodNotifyRoots), limit.SessionNotifications)
				send(t, g.Handler(), "POST", "/mcp", "["+messages[1:]+"]", wire.HeaderSession, id)
				synctest.Wait()
			}
		}
		many()
		if n := view.heard.Load(); n != limit.SessionNotificationsPerSecond {
			t.Errorf("%d of %d in one second were passed on", n, 4*limit.SessionNotifications)
		}
		time.Sleep(time.Second)
		many()
		if n := view.heard.Load(); n != 2*limit.SessionNotificationsPerSecond {
			t.Errorf("%d were passed on in two seconds", n)
		}
	})
}

// Notifications that no revision has, or that are huge, are dropped at once.
func TestUnknownNotificationsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := &stuck{release: make(chan struct{})}
		close(view.release)
		g := New(view, nil)
		defer g.Close()
		id := batchSession(t, g.Handler())
		for i := range 5 {
			send(t, g.Handler(), "POST", "/mcp", notification(fmt.Sprint("notifications/x", i)), wire.HeaderSession, id)
		}
		huge := strings.Replace(notification(mcp.MethodNotifyRoots), "{}", `{"x":"`+strings.Repeat("x", limit.NotificationBytes)+`"}`, 1)
		send(t, g.Handler(), "POST", "/mcp", huge, wire.HeaderSession, id)
		synctest.Wait()
		if n := view.heard.Load(); n != 0 {
			t.Errorf("%d were passed on", n)
		}
	})
}
