package host

import (
	"slices"
	"sync"
	"time"
)

// budget bounds restarts: more than max within a sliding window eject the server
// until it is cleared. A restart leaves the window only when it is old enough and
// the server has worked since; time alone pays nothing back, or a server that
// never works would be started for ever, slowly.
type budget struct {
	max    int
	window time.Duration

	mu       sync.Mutex // guards what follows
	restarts []time.Time
	proof    time.Time // when the server last worked
	ejected  bool
}

// spend charges one restart and reports whether that ejected the server.
func (b *budget) spend() (ejected bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ejected {
		return false
	}
	b.slide()
	b.restarts = append(b.restarts, time.Now())
	b.ejected = len(b.restarts) > b.max
	return b.ejected
}

func (b *budget) slide() {
	old := time.Now().Add(-b.window)
	b.restarts = slices.DeleteFunc(b.restarts, func(t time.Time) bool {
		return !t.After(old) && t.Before(b.proof)
	})
}

// worked notes that the server answered.
func (b *budget) worked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.proof = time.Now()
}

func (b *budget) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restarts, b.ejected = nil, false
}

// used returns how many restarts count now.
func (b *budget) used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ejected { // what led to the ejection stays visible
		b.slide()
	}
	return len(b.restarts)
}

func (b *budget) isEjected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ejected
}
