package vault

import "context"

// Remembered is how many versions a sealed store remembers.
func Remembered(s Store) int {
	n := &s.(*sealedStore).newest
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.seen)
}

// PutLegacyRing gives store the keys that an usher made which did not authenticate
// records.
func PutLegacyRing(ctx context.Context, store Store, place, encoded string) error {
	master, err := parseKey([]byte(encoded))
	if err != nil {
		return err
	}
	r, err := newRing(wrapLegacy, madeOf(place, master).lock, master, now())
	if err != nil {
		return err
	}
	r.Format = 1
	return Hold(ctx, store, ringLease, ringLeaseTTL, func(ctx context.Context, lease Lease) error {
		_, err := NewKeys(store, KeyOptions{}).writeRing(ctx, r, 0, lease)
		return err
	})
}
