package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/usher-mcp/usher/vault"
)

// Records without secrets were once stored with a checksum only. Such a store has a
// ring whose data keys are wrapped for wrapLegacy, or no ring at all. The first use
// of its keys authenticates all records and then wraps the data keys for
// wrapAuthentic, in this order: whatever stops it, the next use goes on. From then on
// a record without an authentication code is refused.
//
// Nobody without the master key can undo the last step, except by putting back a
// ring from before it. After `usher key rotate` with a new master key such a ring
// does not open any more.

// errKeysGone is what a store is that had keys a moment ago.
func errKeysGone() error {
	return &vault.CorruptError{Key: ringKeyName(), Err: fmt.Errorf("%w: the keys were removed", vault.ErrTampered)}
}

// firstPurpose decides what the first ring of a store is made for: legacy when there
// are records to authenticate. It refuses a store whose keys somebody may have
// removed, unless a person insists.
func (k *Keys) firstPurpose(ctx context.Context, m making) (string, error) {
	old, made, err := k.unkeyed(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case m == mustMake:
	case made != nil:
		return "", &Error{
			Place: "store", Kind: vault.ErrWrongKey, Err: fmt.Errorf("%s was authenticated with a key that the store no longer has", made),
			Next: "restore a backup of the store; or, to go on without what cannot be checked: usher key rotate",
		}
	case old != nil && k.opt.Shared:
		return "", &Error{
			Place: "store", Kind: vault.ErrNoKey, Err: fmt.Errorf("the database has records such as %s but no keys to check them with; somebody may have removed the keys", old),
			Next: "if you trust what is in the database: usher key rotate",
		}
	}
	if old != nil {
		return wrapLegacy, nil
	}
	return wrapAuthentic, nil
}

// unkeyed looks for records that should be authenticated in a store without keys:
// one that is not and one that is, nil when there is none. What can be learned again
// does not count.
func (k *Keys) unkeyed(ctx context.Context) (plain, made *vault.Key, err error) {
	keeper, ok := k.store.(vault.Keeper)
	if !ok {
		return nil, nil, nil
	}
	kinds, err := keeper.Kinds(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, kind := range kinds {
		if !vault.Authenticated(kind) || vault.Expendable(kind) {
			continue
		}
		keys, err := keeper.Keys(ctx, kind)
		if err != nil {
			return nil, nil, err
		}
		for _, key := range keys {
			rec, err := k.store.Get(ctx, key)
			if errors.Is(err, vault.ErrNotFound) || errors.Is(err, vault.ErrCorrupt) {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			if signed(rec.Data) {
				return plain, &key, nil
			}
			plain = &key
		}
	}
	return plain, nil, nil
}

// upgrade authenticates a store whose ring is of an older usher, unless this process
// has seen a newer ring already: then somebody put the old one back.
func (k *Keys) upgrade(ctx context.Context) (*keyring, error) {
	if open := k.opened(); open != nil && open.authentic {
		return nil, &vault.CorruptError{Key: ringKeyName(), Err: fmt.Errorf("%w: the keys are older ones than before", vault.ErrTampered)}
	}
	return k.migrate(ctx)
}

// maxMigratedCaches bounds how many records that can be learned again are
// authenticated, of each kind; the others are learned again.
const maxMigratedCaches = 500

// migrate authenticates all records that an older usher stored and marks the ring.
func (k *Keys) migrate(ctx context.Context) (out *keyring, err error) {
	keeper, ok := k.store.(vault.Keeper)
	if !ok {
		return k.unlockStored(ctx) // see Sealed: nothing is authenticated
	}
	err = vault.Hold(ctx, k.store, ringLease, ringLeaseTTL, func(ctx context.Context, lease vault.Lease) error {
		r := &rotation{Keys: k, keeper: keeper, lease: lease}
		if err := r.read(ctx); err != nil {
			return err
		}
		if !r.unlocked.authentic {
			if err := r.authenticate(ctx); err != nil {
				return err
			}
		}
		out, err = k.unlockStored(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("authenticate the records of the store: %w", err)
	}
	return out, nil
}

func (k *Keys) unlockStored(ctx context.Context) (*keyring, error) {
	rec, err := k.readRing(ctx)
	if err != nil {
		return nil, err
	}
	return k.unlock(ctx, rec)
}

// authenticate does all kinds, then marks the ring.
func (r *rotation) authenticate(ctx context.Context) error {
	kinds, err := r.keeper.Kinds(ctx)
	if err != nil {
		return err
	}
	for _, kind := range slices.DeleteFunc(kinds, func(kind string) bool { return !vault.Authenticated(kind) }) {
		keys, err := r.keeper.Keys(ctx, kind)
		if err != nil {
			return err
		}
		if vault.Expendable(kind) {
			keys = keys[:min(len(keys), maxMigratedCaches)]
		}
		for _, key := range keys {
			if err := r.authenticateOne(ctx, key); err != nil {
				return err
			}
		}
	}
	_, master, err := r.findMaster(ctx, r.ring)
	if err != nil {
		return err
	}
	r.ring.Format = ringFormat
	if err := r.ring.wrap(r.unlocked.raw, master); err != nil {
		return err
	}
	return r.write(ctx)
}

// authenticateOne does one record, again as long as others write it meanwhile.
func (r *rotation) authenticateOne(ctx context.Context, key vault.Key) error {
	for {
		rec, err := r.store.Get(ctx, key)
		if errors.Is(err, vault.ErrNotFound) || errors.Is(err, vault.ErrCorrupt) {
			return nil
		}
		if err != nil || signed(rec.Data) {
			return err
		}
		err = r.keeper.Rewrite(ctx, key, r.unlocked.seal(key, rec.Version, rec.Data), rec.Version, r.lease)
		if !errors.Is(err, vault.ErrConflict) {
			return err
		}
	}
}
