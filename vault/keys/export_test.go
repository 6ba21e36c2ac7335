package keys

import (
	"context"

	"github.com/usher-mcp/usher/vault"
)

// Remembered is how many versions a sealed store remembers.
func Remembered(s vault.Store) int {
	n := &s.(*sealedStore).newest
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.seen)
}

// PutLegacyRing gives store the keys that an usher made which did not authenticate
// records.
func PutLegacyRing(ctx context.Context, store vault.Store, place, encoded string) error {
	master, err := parseKey([]byte(encoded))
	if err != nil {
		return err
	}
	r, err := newRing(wrapLegacy, madeOf(place, master).lock, master, now())
	if err != nil {
		return err
	}
	r.Format = 1
	return vault.Hold(ctx, store, ringLease, ringLeaseTTL, func(ctx context.Context, lease vault.Lease) error {
		_, err := New(store, Options{}).writeRing(ctx, r, 0, lease)
		return err
	})
}
