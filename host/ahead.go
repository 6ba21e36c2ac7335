package host

import (
	"context"

	"github.com/usher-mcp/usher/host/internal/supervise"
)

// ahead is a connection that is made before the request that needs it comes.
type ahead struct {
	done chan struct{} // closed when the rest is set
	live *live         // held for the next caller; nil when err is set
	err  error
}

// Ahead begins to connect for a request that is about to come, and does not wait for
// it. The next request gets the connection, or the failure, as if it had connected
// itself. Without one the connection stays until the Host is closed.
//
// It asks neither rules nor budgets: whether the server may be used at all has to be
// known, and whether it may be started is looked at as always.
func (h *Host) Ahead(ctx context.Context, k Key) {
	u, err := h.unit(k)
	if err != nil {
		return // as the request will say
	}
	t, err := u.admit()
	if err != nil {
		return
	}
	u.settle(t, supervise.Neither, nil)
	u.mu.Lock()
	connected := u.live != nil
	u.mu.Unlock()
	a := &ahead{done: make(chan struct{})}
	if connected || !u.ahead.CompareAndSwap(nil, a) {
		return
	}
	if !h.begin(&h.wg) {
		u.ahead.Store(nil)
		return
	}
	// Before the caller goes on and has the store to itself.
	if version, ok := h.opt.Memory.Era(ctx, u.digest); ok {
		u.era.Store(&version)
	}
	go func() {
		defer h.wg.Done()
		a.live, a.err = u.acquire(h.life)
		close(a.done)
	}()
}

// arrive waits for the connection that was begun ahead, if one was. It returns neither
// a connection nor an error when there is none.
func (u *unit) arrive(ctx context.Context) (*live, error) {
	a := u.ahead.Swap(nil)
	if a == nil {
		return nil, nil
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		u.ahead.CompareAndSwap(nil, a) // for the next one
		return nil, u.gaveUp(ctx)
	}
	if a.err == nil && a.live.conn.Gone().Err() != nil {
		u.lose(a.live)
		u.release(a.live)
		return nil, nil
	}
	return a.live, a.err
}
