package keys

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// retiredLife is how long a data key that seals nothing any more is kept. A
// process that was just about to store something sealed with it is still
// understood.
const retiredLife = time.Hour

// Rotation says what [Keys.Rotate] did.
type Rotation struct {
	// From and To are where the master key was and is kept.
	From, To string
	// Resumed says that a rotation which was interrupted has been finished.
	Resumed bool
	// Resealed is how many records were sealed again.
	Resealed int
	// Unopened are records that did not open and stay as they are.
	Unopened []vault.Key
	// Remarks are what is left for a person to do.
	Remarks []string
}

// Rotate makes a new master key and a new data key, and seals all records again.
// to says where the new master key is kept, as [Options].Setting writes it;
// empty means where it is now. A key in the environment cannot be replaced from
// here: there only the data key is new.
//
// The store can be used meanwhile. Whatever stops a rotation, all records open;
// the next one finishes it.
func (k *Keys) Rotate(ctx context.Context, to string) (Rotation, error) {
	keeper, ok := k.store.(vault.Keeper)
	if !ok {
		return Rotation{}, errors.New("rotate the keys: this store cannot be looked after as a whole")
	}
	// Makes the first ring where there is none, and proves that the key is here.
	if _, err := k.ready(ctx, mustMake); err != nil {
		return Rotation{}, fmt.Errorf("rotate the keys: %w", err)
	}
	var out Rotation
	err := vault.Hold(ctx, k.store, ringLease, ringLeaseTTL, func(ctx context.Context, lease vault.Lease) (err error) {
		r := &rotation{Keys: k, keeper: keeper, lease: lease}
		out, err = r.run(ctx, to)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("rotate the keys: %w", err)
	}
	return out, nil
}

// rotation is one run of Rotate.
type rotation struct {
	*Keys
	keeper   vault.Keeper
	lease    vault.Lease
	version  int64 // of the ring as last read or written
	ring     *ring
	unlocked *keyring // a copy of its own
	out      Rotation
}

// run takes the steps: a second lock and a new data key into the ring → the
// master key to its place → all records → the old lock out of the ring → the
// old master key out of its place. After each of them either lock opens all.
func (r *rotation) run(ctx context.Context, to string) (Rotation, error) {
	if err := r.read(ctx); err != nil {
		return r.out, err
	}
	r.out.From = r.ring.Locks[0].Place
	target, err := r.place(cmp.Or(to, r.opt.Setting))
	if err != nil {
		return r.out, err
	}
	if r.out.Resumed = r.unfinished(to); !r.out.Resumed {
		if err := r.begin(ctx, target); err != nil {
			return r.out, err
		}
	}
	r.out.To = r.ring.newest().Place
	inUse, err := r.reseal(ctx)
	if err != nil {
		return r.out, err
	}
	return r.out, r.finish(ctx, inUse)
}

func (r *rotation) read(ctx context.Context) error {
	rec, err := r.readRing(ctx)
	if err != nil {
		return err
	}
	if r.ring, err = decodeRing(rec); err != nil {
		return err
	}
	r.version = rec.Version
	r.unlocked, err = r.unlock(ctx, rec)
	return err
}

// unfinished says whether an earlier rotation got as far as putting its master
// key into place.
func (r *rotation) unfinished(to string) bool {
	newest := r.ring.newest()
	return len(r.ring.Locks) > 1 && r.unlocked.lock == newest.ID && (to == "" || to == newest.Place)
}

// begin adds a lock and a data key to the ring, then puts the master key where
// it belongs and looks whether it can be had from there.
func (r *rotation) begin(ctx context.Context, target place) error {
	_, master, err := r.findMaster(ctx, r.ring)
	if err != nil {
		return err
	}
	r.ring.keepLock(r.unlocked.lock) // what an earlier one left undone
	m, err := target.next(ctx, r.ring)
	if err != nil {
		return err
	}
	if !r.ring.has(m.lock.ID) {
		r.ring.Locks = append(r.ring.Locks, m.lock)
	}
	var id keyID
	_, _ = rand.Read(id[:]) // never fails
	r.ring.addKey(id, now())
	if err := r.unlocked.add(id, newKey()); err != nil {
		return err
	}
	r.unlocked.current = id
	for _, with := range [][]byte{master, m.master} {
		if err := r.ring.wrap(r.unlocked.raw, with); err != nil {
			return err
		}
	}
	if err := r.write(ctx); err != nil {
		return err
	}
	if err := m.put(ctx); err != nil {
		return err
	}
	return r.proved(ctx, target, m)
}

// proved makes sure that the old master key is not thrown away for one that
// cannot be had again.
func (r *rotation) proved(ctx context.Context, target place, m made) error {
	if m.lock.Sealed != nil {
		r.remember(m.lock.ID, m.master) // it lies in the ring, which was written
		return nil
	}
	only := *r.ring
	only.Locks = []ringLock{m.lock}
	back, err := target.find(ctx, &only)
	if err != nil {
		return fmt.Errorf("the new key cannot be read back, the old one stays: %w", err)
	}
	r.remember(m.lock.ID, back)
	return nil
}

func (r *rotation) write(ctx context.Context) error {
	rec, err := r.writeRing(ctx, r.ring, r.version, r.lease)
	if err != nil {
		return err
	}
	r.version = rec.Version
	return nil
}

// reseal seals every record that is not sealed with the newest data key. It
// returns the data keys that are still in use, because something does not open.
// What can be learned again is left alone: it is when its data key is gone.
func (r *rotation) reseal(ctx context.Context) (inUse map[keyID]bool, err error) {
	inUse = map[keyID]bool{r.unlocked.current: true}
	kinds, err := r.keeper.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if kind == vault.KindKey || vault.Expendable(kind) {
			continue
		}
		keys, err := r.keeper.Keys(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if err := r.resealOne(ctx, key, inUse); err != nil {
				return nil, err
			}
		}
	}
	return inUse, nil
}

// resealOne does one record, again as long as others write it meanwhile.
func (r *rotation) resealOne(ctx context.Context, key vault.Key, inUse map[keyID]bool) error {
	for {
		rec, err := r.store.Get(ctx, key)
		if errors.Is(err, vault.ErrNotFound) || errors.Is(err, vault.ErrCorrupt) {
			return nil // gone, or damaged and set aside
		}
		if err != nil {
			return err
		}
		id, plain, err := r.unlocked.open(rec)
		if err == nil && id == r.unlocked.current {
			return nil
		}
		if err != nil {
			inUse[id] = true
			r.out.Unopened = append(r.out.Unopened, key)
			return nil
		}
		err = r.keeper.Rewrite(ctx, key, r.unlocked.seal(key, rec.Version, plain), rec.Version, r.lease)
		if err == nil {
			r.out.Resealed++
			return nil
		}
		if !errors.Is(err, vault.ErrConflict) {
			return err
		}
	}
}

// open returns the plain data of a record as the store has it, and the data key
// that protects it.
func (k *keyring) open(rec vault.Record) (id keyID, plain []byte, err error) {
	secret := vault.HoldsSecrets(rec.Kind)
	if secret {
		id, err = sealedWith(rec.Data)
	} else {
		id, err = signedWith(rec.Data)
	}
	switch {
	case err != nil:
	case k.keys[id] == nil:
		err = vault.ErrUnknownKey
	case secret:
		plain, err = openData(k.keys[id], rec)
	default:
		plain, err = verifyData(k.macs[id], rec)
	}
	return id, plain, err
}

// finish leaves one lock and drops data keys that nothing needs any more.
func (r *rotation) finish(ctx context.Context, inUse map[keyID]bool) error {
	old := slices.Clone(r.ring.Locks[:len(r.ring.Locks)-1])
	r.ring.keepLock(r.ring.newest().ID)
	r.ring.Keys = slices.DeleteFunc(r.ring.Keys, func(dk dataKey) bool {
		id, err := parseKeyID(dk.ID)
		return err == nil && !inUse[id] && !dk.Retired.IsZero() && time.Since(dk.Retired) > retiredLife
	})
	if err := r.write(ctx); err != nil {
		return err
	}
	for _, l := range old {
		p, err := r.placeOf(l)
		if err != nil {
			continue // it names a place of a later usher; the key opens nothing any more
		}
		if remark := p.forget(ctx, l); remark != "" {
			r.out.Remarks = append(r.out.Remarks, remark)
		}
	}
	return nil
}

// placeOf returns the place of a lock that was in use.
func (r *rotation) placeOf(l ringLock) (place, error) {
	if r.opt.File != "" && l.Place == "file:"+r.opt.File {
		return &filePlace{path: r.opt.File, ours: true}, nil
	}
	return r.place(l.Place)
}
