package supervise

import (
	"sync"
	"time"
)

// Circuit is the state of a breaker.
type Circuit string

// The states of a circuit.
const (
	Closed   Circuit = "closed"
	Open     Circuit = "open"
	HalfOpen Circuit = "half_open"
)

// MaxPause bounds how long a circuit stays open, however often a probe failed.
const MaxPause = 10 * time.Minute

// Verdict is what an outcome says about the health of a server.
type Verdict int

// What an outcome can say.
const (
	Neither Verdict = iota // says nothing: the caller left, the server asked for patience
	Success
	Failure
)

// Breaker keeps callers away from a server that fails again and again. Closed, it
// counts failures in a row; at the threshold it opens for a pause, then lets one
// probe through. A probe that succeeds closes it, one that fails opens it again for
// twice as long.
type Breaker struct {
	threshold int
	reset     time.Duration

	mu         sync.Mutex // guards what follows
	probing    bool       // half-open: the probe is in flight
	state      Circuit
	failures   int    // in a row
	generation uint64 // grows with every change of state
	pause      time.Duration
	until      time.Time // open: no probe before
}

// Ticket is the permission for one request; its result counts only in the
// generation that admitted it.
type Ticket struct {
	generation uint64
	Probe      bool
}

// Init sets up a closed circuit.
func (b *Breaker) Init(threshold int, reset time.Duration) {
	b.threshold, b.reset, b.state, b.pause = max(threshold, 1), reset, Closed, reset
}

// Allow admits a request, or returns how long to wait for the next probe; 0 when one
// is in flight.
func (b *Breaker) Allow() (t Ticket, wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Open {
		if wait := time.Until(b.until); wait > 0 {
			return Ticket{}, wait, false
		}
		b.move(HalfOpen)
	}
	if b.state == HalfOpen {
		if b.probing {
			return Ticket{}, 0, false
		}
		b.probing = true
	}
	return Ticket{generation: b.generation, Probe: b.state == HalfOpen}, 0, true
}

// Done takes the result of an admitted request in and returns the state that it moved
// the circuit to, "" when it did not. Every ticket must come back, or no probe would be
// admitted again.
func (b *Breaker) Done(t Ticket, v Verdict) (moved Circuit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.generation != b.generation {
		return "" // the news are old
	}
	b.probing = false
	switch {
	case v == Success:
		b.failures, b.pause = 0, b.reset
		if b.state == HalfOpen {
			b.move(Closed)
			return Closed
		}
	case v == Failure:
		b.failures++
		if b.state == HalfOpen || b.failures >= b.threshold {
			b.until = time.Now().Add(b.pause)
			b.pause = min(b.pause*2, max(MaxPause, b.reset))
			b.move(Open)
			return Open
		}
	}
	return ""
}

// Delay keeps an open circuit open for at least wait from now.
func (b *Breaker) Delay(wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := time.Now().Add(wait); b.state == Open && until.After(b.until) {
		b.until = until
	}
}

// Trip opens the circuit for wait, whatever failed before, and reports whether that
// changed its state.
func (b *Breaker) Trip(wait time.Duration) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Open {
		return false
	}
	b.until = time.Now().Add(wait)
	b.move(Open)
	return true
}

// Left is how much longer an open circuit stays open.
func (b *Breaker) Left() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != Open {
		return 0
	}
	return max(time.Until(b.until), 0)
}

// Suspect lets only a probe through next, as after a pause.
func (b *Breaker) Suspect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.move(HalfOpen)
}

// IsClosed reports whether requests pass without being probes.
func (b *Breaker) IsClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == Closed
}

func (b *Breaker) move(to Circuit) {
	b.state, b.probing = to, false
	b.generation++
}

// Clear closes the circuit and forgets everything.
func (b *Breaker) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.pause = 0, b.reset
	b.move(Closed)
}

// Look returns the state and the failures in a row. A pause that is over shows as
// half-open, whether or not somebody has come.
func (b *Breaker) Look() (Circuit, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Open && time.Until(b.until) <= 0 {
		return HalfOpen, b.failures
	}
	return b.state, b.failures
}
