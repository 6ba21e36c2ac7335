package host

import (
	"sync"
	"time"
)

// circuit is the state of a breaker.
type circuit string

const (
	closed   circuit = "closed"
	open     circuit = "open"
	halfOpen circuit = "half_open"
)

// maxPause bounds how long a circuit stays open, however often a probe failed.
const maxPause = 10 * time.Minute

// verdict is what an outcome says about the health of a server.
type verdict int

const (
	neither verdict = iota // says nothing: the caller left, the server asked for patience
	success
	failure
)

// breaker keeps callers away from a server that fails again and again. Closed, it
// counts failures in a row; at the threshold it opens for a pause, then lets one
// probe through. A probe that succeeds closes it, one that fails opens it again for
// twice as long.
type breaker struct {
	threshold int
	reset     time.Duration

	mu         sync.Mutex // guards what follows
	probing    bool       // half-open: the probe is under way
	state      circuit
	failures   int    // in a row
	generation uint64 // grows with every change of state
	pause      time.Duration
	until      time.Time // open: no probe before
}

// ticket is the permission for one request; its result counts only in the
// generation that admitted it.
type ticket struct {
	generation uint64
	probe      bool
}

func (b *breaker) init(threshold int, reset time.Duration) {
	b.threshold, b.reset, b.state, b.pause = max(threshold, 1), reset, closed, reset
}

// allow admits a request, or says how long to wait for the next probe; 0 when one
// is under way.
func (b *breaker) allow() (t ticket, wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == open {
		if wait := time.Until(b.until); wait > 0 {
			return ticket{}, wait, false
		}
		b.move(halfOpen)
	}
	if b.state == halfOpen {
		if b.probing {
			return ticket{}, 0, false
		}
		b.probing = true
	}
	return ticket{generation: b.generation, probe: b.state == halfOpen}, 0, true
}

// done takes the result of an admitted request in and returns the state that it moved
// the circuit to, "" when it did not. Every ticket must come back, or no probe would be
// admitted again.
func (b *breaker) done(t ticket, v verdict) (moved circuit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.generation != b.generation {
		return "" // the news are old
	}
	b.probing = false
	switch {
	case v == success:
		b.failures, b.pause = 0, b.reset
		if b.state == halfOpen {
			b.move(closed)
			return closed
		}
	case v == failure:
		b.failures++
		if b.state == halfOpen || b.failures >= b.threshold {
			b.until = time.Now().Add(b.pause)
			b.pause = min(b.pause*2, max(maxPause, b.reset))
			b.move(open)
			return open
		}
	}
	return ""
}

// delay keeps an open circuit open for at least wait from now.
func (b *breaker) delay(wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := time.Now().Add(wait); b.state == open && until.After(b.until) {
		b.until = until
	}
}

// left is how much longer an open circuit stays open.
func (b *breaker) left() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != open {
		return 0
	}
	return max(time.Until(b.until), 0)
}

// suspect lets only a probe through next, as after a pause.
func (b *breaker) suspect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.move(halfOpen)
}

// isClosed reports whether requests pass without being probes.
func (b *breaker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == closed
}

func (b *breaker) move(to circuit) {
	b.state, b.probing = to, false
	b.generation++
}

// clear closes the circuit and forgets everything.
func (b *breaker) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.pause = 0, b.reset
	b.move(closed)
}

// look returns the state and the failures in a row. A pause that is over shows as
// half-open, whether or not somebody has come.
func (b *breaker) look() (circuit, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == open && time.Until(b.until) <= 0 {
		return halfOpen, b.failures
	}
	return b.state, b.failures
}
