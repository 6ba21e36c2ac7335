package surface

import (
	"fmt"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// TestChangesAreReadAtALimitedRate: a server that says all the time that its list has
// changed is not asked all the time, and no snapshot is made all the time.
func TestChangesAreReadAtALimitedRate(t *testing.T) {
	srv, fk := serve(t, "s", fake.Options{Versions: modernOnly})
	w := start(t, []config.Server{srv}, options{}, nil)
	do(t, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`)
	listen(t, single1(t, w, "s"), modernAgent, Subscription{Tools: true})
	w.listening(t, 1)
	awaitHearing(t, fk)
	began, before := time.Now(), fk.Ledger().Count(mcp.MethodToolsList)
	for i := range 200 {
		fk.SetTools([]fake.Tool{simple("s", fmt.Sprint("tool", i), "")})
		<-time.After(2 * time.Millisecond)
	}
	most := limit.RelistBurst + int(time.Since(began)/limit.RelistInterval) + 1
	if n := fk.Ledger().Count(mcp.MethodToolsList) - before; n > most || n == 0 {
		t.Errorf("the list was read %d times, want at most %d", n, most)
	}
}

func TestTurns(t *testing.T) {
	at := time.Unix(1000, 0)
	var paid time.Time
	for i := range 3 * limit.RelistBurst {
		var wait time.Duration
		paid, wait = nextTurn(paid, at)
		if free := i < limit.RelistBurst; free != (wait == 0) || wait > limit.RelistInterval {
			t.Errorf("turn %d waits %v", i, wait)
		}
		at = at.Add(wait)
	}
	if _, wait := nextTurn(paid, at.Add(time.Hour)); wait != 0 {
		t.Errorf("after an hour a turn waits %v", wait)
	}
}
