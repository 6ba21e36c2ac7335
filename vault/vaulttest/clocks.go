package vaulttest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Hands is a clock that tests move: [Hands.Pass] lets time go by, [Hands.Step] sets
// the wall clock as a person or a time server does.
type Hands struct {
	mu  sync.Mutex // guards now
	now vault.Moment
}

// NewHands returns a clock that shows the time of its making and stands still.
func NewHands() *Hands { return &Hands{now: vault.Now()} }

// Now is the clock.
func (h *Hands) Now() vault.Moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Pass lets time go by on all clocks.
func (h *Hands) Pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = vault.Moment{Wall: h.now.Wall.Add(d), Steady: h.now.Steady.Add(d), Boot: h.now.Boot + d}
}

// Step sets the wall clock alone.
func (h *Hands) Step(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Wall = h.now.Wall.Add(d)
}

// RunClocks tests what must hold of leases whatever happens to the clocks of the
// processes that share a store. open returns the store as processes with these clocks
// see it.
func RunClocks(t *testing.T, open func(t *testing.T, clocks ...vault.Clock) []vault.Store) {
	const ttl = 6 * time.Second
	for _, step := range []time.Duration{0, 24 * time.Hour, time.Hour, -time.Hour, -24 * time.Hour} {
		t.Run("taken while the clock is off by "+step.String(), func(t *testing.T) {
			a, b := NewHands(), NewHands()
			a.Step(step)
			testNobodyBlocks(t, open(t, a.Now, b.Now), a, b, ttl)
		})
		t.Run("clock is set while held by "+step.String(), func(t *testing.T) {
			a, b := NewHands(), NewHands()
			testNobodySteals(t, open(t, a.Now, b.Now), a, b, step, ttl)
		})
	}
}

// testNobodyBlocks: the lease of a dead holder is free to another process when it has
// seen it for its duration, and not a moment before.
func testNobodyBlocks(t *testing.T, stores []vault.Store, a, b *Hands, ttl time.Duration) {
	mustLease(t, stores[0], "l", ttl)
	held := func(what string) {
		t.Helper()
		_, err := stores[1].Lease(t.Context(), "l", ttl)
		h, ok := errors.AsType[*vault.HeldError](err)
		if !ok || h.Remaining > ttl+time.Second {
			t.Fatalf("%s: %v, want it held for at most %v", what, err, ttl)
		}
	}
	held("at once")
	pass := func(d time.Duration) { a.Pass(d); b.Pass(d) }
	pass(ttl - time.Millisecond)
	held("just before its time is over")
	pass(10 * time.Millisecond)
	mustLease(t, stores[1], "l", ttl)
}

// testNobodySteals: a holder that renews keeps its lease whatever the wall clock does,
// and so does one that has just been seen for the first time.
func testNobodySteals(t *testing.T, stores []vault.Store, a, b *Hands, step, ttl time.Duration) {
	l := mustLease(t, stores[0], "l", ttl)
	a.Step(step)
	b.Step(step)
	for range 4 {
		if _, err := stores[1].Lease(t.Context(), "l", ttl); !errors.Is(err, vault.ErrHeld) {
			t.Fatalf("a second holder beside one that lives: %v", err)
		}
		a.Pass(ttl / 2)
		b.Pass(ttl / 2)
		if _, err := stores[0].Renew(t.Context(), l, ttl); err != nil {
			t.Fatal(err)
		}
		b.Step(step)
		// The holder's clock is set back so that the lease ends when it did before.
		a.Step(-ttl / 2)
	}
	if err := stores[0].Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	mustLease(t, stores[1], "l", ttl)
}
