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
