package keys

import (
	"fmt"
	"sync"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// newestVersions remembers the newest version of records that was seen in this
// process, for the kinds that decide what others may do. Versions only grow, so an
// older one that comes back was put back by somebody who writes the database past
// usher.
type newestVersions struct {
	mu    sync.Mutex // guards what follows
	clock int64      // grows with every change of seen
	seen  map[vault.Key]seenVersion
}

// seenVersion is the lowest version that the record may have from now on.
type seenVersion struct {
	version int64
	at      int64 // clock
}

// mark is taken before a record is read: what other goroutines see during the read
// says nothing about it.
func (n *newestVersions) mark() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clock
}

// saw takes in that the record has this version or a newer one.
func (n *newestVersions) saw(key vault.Key, version int64) {
	if !guards(key.Kind) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	old, known := n.seen[key]
	if known && old.version >= version {
		return
	}
	if n.seen == nil {
		n.seen = map[vault.Key]seenVersion{}
	}
	if !known && len(n.seen) >= limit.RememberedVersions {
		for k := range n.seen { // any of them
			delete(n.seen, k)
			break
		}
	}
	n.clock++
	n.seen[key] = seenVersion{version, n.clock}
}

// gone takes in that a record which was seen is not there any more.
func (n *newestVersions) gone(key vault.Key, mark int64) {
	n.mu.Lock()
	old, known := n.seen[key]
	n.mu.Unlock()
	if known && old.at <= mark {
		n.saw(key, old.version+1)
	}
}

// check refuses a record that is older than what was seen before the mark.
func (n *newestVersions) check(rec vault.Record, mark int64) error {
	if !guards(rec.Kind) {
		return nil
	}
	n.mu.Lock()
	old := n.seen[rec.Key]
	n.mu.Unlock()
	if old.at <= mark && rec.Version < old.version {
		return fmt.Errorf("%w: its version %d is older than one that was there before", vault.ErrTampered, rec.Version)
	}
	n.saw(rec.Key, rec.Version)
	return nil
}

// guards says whether records of kind decide what a client or a server may do, so
// that an older version of one must not come back.
func guards(kind string) bool {
	return kind == vault.KindToken || kind == vault.KindApproval || kind == vault.KindPin
}
