package upstream

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// TestServerRequestBytes wants the requests of a server bounded by their size too.
func TestServerRequestBytes(t *testing.T) {
	var in inbound
	const half = limit.ServerRequestBytes/2 + 1
	if !in.admit(nil, 2*half) {
		t.Error("a large request that is alone is refused")
	}
	in.release(nil, 2*half)
	if !in.admit(nil, half) || in.admit(nil, half) {
		t.Error("two requests that are too large together are not told apart")
	}
	in.release(nil, half)
	if !in.admit(nil, half) {
		t.Error("there is room again, and it is not used")
	}
}

// stuckLink never gets rid of a cancellation.
type stuckLink struct {
	link
	stuck   chan struct{}
	cancels chan struct{}
}

func (l *stuckLink) cancel(*exchange, string) {
	l.cancels <- struct{}{}
	<-l.stuck
}

// TestCancelsAreBounded cancels more calls than the server accepts cancellations.
func TestCancelsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(&config.Server{Name: "stuck"}, withDefaults(&Options{Log: slog.New(slog.DiscardHandler)}))
		l := &stuckLink{stuck: make(chan struct{}), cancels: make(chan struct{}, 10*limit.ServerCancels)}
		c.link = l
		for range 10 * limit.ServerCancels {
			c.cancel(&exchange{method: mcp.MethodToolsCall}, context.Canceled)
		}
		synctest.Wait()
		if n := len(l.cancels); n != limit.ServerCancels {
			t.Errorf("%d cancellations at once", n)
		}
		close(l.stuck)
		c.cancels.close()
	})
}
