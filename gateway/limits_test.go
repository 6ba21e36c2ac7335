package gateway

import (
	"fmt"
	"testing"

	"github.com/usher-mcp/usher/internal/limit"
)

// TestIdlePrincipalsAreForgotten: what is counted for a principal goes when nothing of
// it is in flight, and never before.
func TestIdlePrincipalsAreForgotten(t *testing.T) {
	var l limits
	l.init(1, 1)
	busy := l.call("busy")
	for i := range 3 * limit.IdlePrincipals {
		l.call(fmt.Sprint("p", i)).calls.Add(-1)
	}
	if n := len(l.all); n > limit.IdlePrincipals {
		t.Errorf("%d principals are counted, want at most %d", n, limit.IdlePrincipals)
	}
	if l.call("busy") != nil {
		t.Error("the request in flight is forgotten")
	}
	busy.calls.Add(-1)
	if l.call("busy") == nil {
		t.Error("there is no room after its end")
	}
}

// TestStreamsAreNotForgotten: a principal whose subscription becomes a request again is
// never without a count, so that a sweep at that moment does not give it new room.
func TestStreamsAreNotForgotten(t *testing.T) {
	var l limits
	l.init(1, 1)
	busy := l.call("busy")
	stop, swept := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swept)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			l.mu.Lock()
			l.sweep = 0 // each new principal makes a sweep
			l.mu.Unlock()
			l.call(fmt.Sprint("p", i)).calls.Add(-1)
		}
	}()
	for range 100_000 {
		l.stream("busy")()
		l.mu.RLock()
		now := l.all["busy"]
		l.mu.RUnlock()
		if now != busy {
			t.Error("the principal was forgotten while its request was in flight")
			break
		}
	}
	close(stop)
	<-swept
	if n := busy.calls.Load(); n != 1 {
		t.Errorf("%d requests are counted, want 1", n)
	}
}
