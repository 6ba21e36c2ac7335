package vault

import (
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// LeaseMark is a lease as it stands in a store. It differs after every acquisition,
// renewal and release.
type LeaseMark struct {
	Holder  string
	Epoch   int64
	Expires int64 // what the holder's clock said; only good to tell marks apart
}

// Sightings remembers since when this process has seen the leases of others unchanged.
// That alone decides when one may be taken over: the clocks of the holder and of this
// process may be days apart, and either may be set while the lease is held. The zero
// value is ready.
type Sightings struct {
	mu sync.Mutex // guards by
	by map[string]sighting
}

type sighting struct {
	mark  LeaseMark
	first Moment
}

// Wait takes in what the lease looks like now and returns for how long it has to stay
// like this before this process may take it over; 0 or less means now.
func (s *Sightings) Wait(name string, mark LeaseMark, ttl time.Duration, now Moment) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.by[name]
	if !ok || seen.mark != mark {
		s.add(name, sighting{mark: mark, first: now})
		return ttl
	}
	return ttl - now.AtLeast(seen.first)
}

// add needs mu.
func (s *Sightings) add(name string, seen sighting) {
	if s.by == nil {
		s.by = map[string]sighting{}
	}
	if _, ok := s.by[name]; !ok && len(s.by) >= limit.WatchedLeases {
		for other := range s.by {
			delete(s.by, other) // any one: it is seen for the first time again
			break
		}
	}
	s.by[name] = seen
}

// Forget drops a lease that is free or ours.
func (s *Sightings) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, name)
}
