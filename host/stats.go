package host

import (
	"sync/atomic"
)

// counters of a Host; read by Stats.
type counters struct {
	requests, retries, timeouts, unknown, limited atomic.Int64
	dials, dialFailures, losses                   atomic.Int64
	opened, ejections, evictions                  atomic.Int64
	garbage, lost, tooLarge                       atomic.Int64
}

// Stats counts what a Host did since it was made.
type Stats struct {
	Requests       int64 // requests and lists asked for
	Retries        int64 // attempts beyond the first
	Timeouts       int64 // requests that one of our deadlines ended
	OutcomeUnknown int64 // requests that ended in ErrOutcomeUnknown
	RateLimited    int64 // answers 429
	Dials          int64 // attempts to connect
	DialFailures   int64
	Losses         int64 // connections that ended by themselves
	CircuitOpened  int64
	Ejections      int64
	Evictions      int64 // idle connections closed
	Garbage        int64 // see upstream.Stats; of closed connections
	Lost           int64
	TooLarge       int64

	Open int // connections that are there now
}

// Stats returns the counts so far.
func (h *Host) Stats() Stats {
	c := &h.count
	h.mu.Lock()
	open := len(h.open)
	h.mu.Unlock()
	return Stats{
		Open:     open,
		Requests: c.requests.Load(), Retries: c.retries.Load(), Timeouts: c.timeouts.Load(),
		OutcomeUnknown: c.unknown.Load(), RateLimited: c.limited.Load(),
		Dials: c.dials.Load(), DialFailures: c.dialFailures.Load(), Losses: c.losses.Load(),
		CircuitOpened: c.opened.Load(), Ejections: c.ejections.Load(), Evictions: c.evictions.Load(),
		Garbage: c.garbage.Load(), Lost: c.lost.Load(), TooLarge: c.tooLarge.Load(),
	}
}
