package sqlstore

import (
	"errors"
	"sync"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// health remembers whether the database could be reached when it was last used.
type health struct {
	mu    sync.Mutex // guards what follows
	since time.Time
	err   error
}

// note takes in how an operation ended; err is in the vault's words. What says
// nothing about the database, such as a caller that left, changes nothing.
func (h *health) note(err error) {
	away := errors.Is(err, vault.ErrUnavailable)
	if err != nil && !away && !spoken(err) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !away:
		h.since, h.err = time.Time{}, nil
	case h.err == nil:
		h.since, h.err = time.Now(), err
	default:
		h.err = err
	}
}

// Health says whether the database could be reached when it was last used: since when
// it could not, and why; nil when it could. It asks nobody.
func (s *Store) Health() (since time.Time, err error) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.since, s.health.err
}
