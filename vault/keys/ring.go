package keys

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// The ring is one record of kind [vault.KindKey]: all data keys, each wrapped by every
// master key that may open the store. It is one record so that every change of
// keys is one atomic write. A second copy is kept because so much hangs on it.
const (
	ringName   = "ring"
	spareName  = "spare"
	ringFormat = 2
	// ringLease is held by the process that makes or changes the ring.
	ringLease    = "keys"
	ringLeaseTTL = 10 * time.Second
)

func ringKeyName() vault.Key  { return vault.LocalKey(vault.KindKey, ringName) }
func spareKeyName() vault.Key { return vault.LocalKey(vault.KindKey, spareName) }

type ring struct {
	Format  int       `json:"format"`
	Current string    `json:"current"` // id of the data key that seals
	Keys    []dataKey `json:"keys"`
	// Locks are the master keys that open the ring, the newest last: one, or
	// two while a rotation runs.
	Locks []ringLock `json:"locks"`
}

type dataKey struct {
	ID      string            `json:"id"`
	Created time.Time         `json:"created"`
	Retired time.Time         `json:"retired,omitzero"` // when it stopped sealing
	Wrapped map[string][]byte `json:"wrapped"`          // by lock id
}

// ringLock describes a master key without telling it.
type ringLock struct {
	ID      string    `json:"id"` // a fingerprint of the key
	Place   string    `json:"place"`
	Created time.Time `json:"created"`
	Entry   string    `json:"entry,omitempty"`  // its name in a keychain
	Sealed  []byte    `json:"sealed,omitempty"` // the key itself, encrypted with a passphrase
}

// keyring is a ring that was unlocked. It is never changed.
type keyring struct {
	version int64
	lock    string // the master key that opened it
	current keyID
	keys    map[keyID]cipher.AEAD
	macs    map[keyID][]byte // see macKey
	raw     map[keyID][]byte
	// authentic says that every record of the store is authenticated, so that one
	// which is not was written by somebody else. False for a ring of an older
	// usher, until migrate is done.
	authentic bool
}

func (k *keyring) add(id keyID, raw []byte) (err error) {
	if k.keys[id], err = newAEAD(raw); err != nil {
		return err
	}
	if k.macs[id], err = macKey(raw); err != nil {
		return err
	}
	k.raw[id] = raw
	return nil
}

// seal is the [Sealing] with the newest data key.
func (k *keyring) seal(key vault.Key, version int64, plain []byte) []byte {
	if vault.HoldsSecrets(key.Kind) {
		return sealData(k.keys[k.current], k.current, key, version, plain)
	}
	return signData(k.macs[k.current], k.current, key, version, plain)
}

// lockID is a fingerprint of a master key: enough to tell whether it is the
// right one.
func lockID(master []byte) string {
	sum := sha256.Sum256(append([]byte("usher master key\x00"), master...))
	return hex.EncodeToString(sum[:8])
}

// The purpose for which a data key is wrapped. It is authenticated with the wrapped
// key, so that nobody without the master key can make an authenticated store look
// like one of an older usher, whose records need no authentication.
const (
	wrapLegacy    = "usher data key"
	wrapAuthentic = "usher data key of an authenticated store"
)

// wrapBinding ties a wrapped data key to its place in the ring and its purpose.
func wrapBinding(purpose, id, lock string) []byte {
	return []byte(purpose + "\x00" + id + "\x00" + lock)
}

func decodeRing(rec vault.Record) (*ring, error) {
	damaged := func(err error) error { return &vault.CorruptError{Key: rec.Key, Err: err} }
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(rec.Data, &head); err != nil {
		return nil, damaged(err)
	}
	if head.Format > ringFormat {
		return nil, fmt.Errorf("read the keys of the store: %w: they have format %d, this usher knows %d", vault.ErrNewer, head.Format, ringFormat)
	}
	r := &ring{}
	if err := json.Unmarshal(rec.Data, r); err != nil {
		return nil, damaged(err)
	}
	if len(r.Keys) == 0 || len(r.Locks) == 0 {
		return nil, damaged(errors.New("it holds no keys"))
	}
	return r, nil
}

func (r *ring) has(lock string) bool {
	return slices.ContainsFunc(r.Locks, func(l ringLock) bool { return l.ID == lock })
}

// newest is the lock that was added last.
func (r *ring) newest() ringLock { return r.Locks[len(r.Locks)-1] }

// open unwraps all data keys.
func (r *ring) open(version int64, lock string, master []byte) (*keyring, error) {
	wrap, err := newAEAD(master)
	if err != nil {
		return nil, err
	}
	out := &keyring{version: version, lock: lock, keys: map[keyID]cipher.AEAD{}, macs: map[keyID][]byte{}, raw: map[keyID][]byte{}}
	if out.current, err = parseKeyID(r.Current); err != nil {
		return nil, &vault.CorruptError{Key: ringKeyName(), Err: err}
	}
	for _, dk := range r.Keys {
		id, err := parseKeyID(dk.ID)
		if err != nil {
			return nil, &vault.CorruptError{Key: ringKeyName(), Err: err}
		}
		raw, err := wrap.Open(nil, nil, dk.Wrapped[lock], wrapBinding(wrapAuthentic, dk.ID, lock))
		authentic := err == nil
		if !authentic {
			raw, err = wrap.Open(nil, nil, dk.Wrapped[lock], wrapBinding(wrapLegacy, dk.ID, lock))
		}
		if err != nil {
			continue // the records it sealed say so; the others open
		}
		if err := out.add(id, raw); err != nil {
			return nil, &vault.CorruptError{Key: ringKeyName(), Err: err}
		}
		// One is enough: all are wrapped again at once.
		out.authentic = out.authentic || authentic
	}
	if out.keys[out.current] == nil {
		return nil, &vault.CorruptError{Key: ringKeyName(), Err: fmt.Errorf("the data key in use: %w", vault.ErrTampered)}
	}
	return out, nil
}

// addKey puts a data key into the ring and makes it the one that seals.
func (r *ring) addKey(id keyID, at time.Time) {
	for i := range r.Keys {
		if r.Keys[i].Retired.IsZero() {
			r.Keys[i].Retired = at
		}
	}
	r.Keys = append(r.Keys, dataKey{ID: id.String(), Created: at, Wrapped: map[string][]byte{}})
	r.Current = id.String()
}

// wrap stores all data keys under a master key.
func (r *ring) wrap(raw map[keyID][]byte, master []byte) error {
	return r.wrapFor(wrapAuthentic, raw, master)
}

func (r *ring) wrapFor(purpose string, raw map[keyID][]byte, master []byte) error {
	aead, err := newAEAD(master)
	if err != nil {
		return err
	}
	lock := lockID(master)
	for i, dk := range r.Keys {
		id, err := parseKeyID(dk.ID)
		if err != nil {
			return &vault.CorruptError{Key: ringKeyName(), Err: err}
		}
		if raw[id] != nil {
			r.Keys[i].Wrapped[lock] = aead.Seal(nil, nil, raw[id], wrapBinding(purpose, dk.ID, lock))
		}
	}
	return nil
}

// keepLock drops all locks but one, and the copies of the keys under them.
func (r *ring) keepLock(lock string) {
	r.Locks = slices.DeleteFunc(r.Locks, func(l ringLock) bool { return l.ID != lock })
	for i := range r.Keys {
		for id := range r.Keys[i].Wrapped {
			if id != lock {
				delete(r.Keys[i].Wrapped, id)
			}
		}
	}
}

// newRing makes the first ring of a store, for a purpose of a data key.
func newRing(purpose string, lock ringLock, master []byte, at time.Time) (*ring, error) {
	var id keyID
	_, _ = rand.Read(id[:]) // never fails
	r := &ring{Format: ringFormat, Locks: []ringLock{lock}}
	r.addKey(id, at)
	return r, r.wrapFor(purpose, map[keyID][]byte{id: newKey()}, master)
}

// readRing returns the ring's record. When it is gone or damaged, its copy takes
// its place.
func (k *Keys) readRing(ctx context.Context) (vault.Record, error) {
	rec, err := k.store.Get(ctx, ringKeyName())
	if err == nil {
		if _, err = decodeRing(rec); !errors.Is(err, vault.ErrCorrupt) {
			return rec, err
		}
	}
	if !errors.Is(err, vault.ErrNotFound) && !errors.Is(err, vault.ErrCorrupt) {
		return vault.Record{}, fmt.Errorf("read the keys of the store: %w", err)
	}
	spare, spareErr := k.store.Get(ctx, spareKeyName())
	if spareErr != nil {
		if errors.Is(spareErr, vault.ErrNotFound) || errors.Is(spareErr, vault.ErrCorrupt) {
			return vault.Record{}, err
		}
		return vault.Record{}, fmt.Errorf("read the keys of the store: %w", spareErr)
	}
	if _, spareErr := decodeRing(spare); spareErr != nil {
		return vault.Record{}, err
	}
	// rec.Version is 0 where the record is gone, as Put wants it.
	restored, putErr := k.store.Put(ctx, ringKeyName(), spare.Data, rec.Version)
	if errors.Is(putErr, vault.ErrConflict) {
		return k.store.Get(ctx, ringKeyName()) // somebody else has just done it
	}
	if putErr != nil {
		return vault.Record{}, fmt.Errorf("restore the keys of the store from their copy: %w", putErr)
	}
	return restored, nil
}

// writeRing stores the ring for the holder of the lease. The copy goes first: one
// that was left behind would still open with a master key that is to be retired.
func (k *Keys) writeRing(ctx context.Context, r *ring, ifVersion int64, lease vault.Lease) (vault.Record, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return vault.Record{}, err
	}
	spare, err := k.store.Get(ctx, spareKeyName())
	if err != nil && !errors.Is(err, vault.ErrNotFound) && !errors.Is(err, vault.ErrCorrupt) {
		return vault.Record{}, fmt.Errorf("store the copy of the keys: %w", err)
	}
	if _, err := k.store.PutFenced(ctx, spareKeyName(), data, spare.Version, lease); err != nil {
		return vault.Record{}, fmt.Errorf("store the copy of the keys: %w", err)
	}
	rec, err := k.store.PutFenced(ctx, ringKeyName(), data, ifVersion, lease)
	if err != nil {
		return vault.Record{}, fmt.Errorf("store the keys: %w", err)
	}
	return rec, nil
}

// makeRing gives a store its first keys: the master key goes to its place first,
// so that there is never a ring that nothing opens.
func (k *Keys) makeRing(ctx context.Context, m making) (rec vault.Record, err error) {
	err = vault.Hold(ctx, k.store, ringLease, ringLeaseTTL, func(ctx context.Context, lease vault.Lease) error {
		if rec, err = k.readRing(ctx); !errors.Is(err, vault.ErrNotFound) {
			return err // somebody else was faster, or it cannot be told
		}
		purpose, err := k.firstPurpose(ctx, m)
		if err != nil {
			return err
		}
		p, err := k.place(k.opt.Setting)
		if err != nil {
			return err
		}
		made, err := p.first(ctx)
		if err != nil {
			return err
		}
		r, err := newRing(purpose, made.lock, made.master, now())
		if err != nil {
			return err
		}
		k.remember(made.lock.ID, made.master)
		rec, err = k.writeRing(ctx, r, 0, lease)
		return err
	})
	return rec, err
}

// now is the present time as every store can hold it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
