package keys

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/usher-mcp/usher/vault"
)

// Error says which place of the master key is in trouble and what to do. It
// is [vault.ErrUnavailable] and either [vault.ErrNoKey] or [vault.ErrWrongKey].
type Error struct {
	// Place is where the key was looked for, as [Options].Setting writes it.
	Place string
	Kind  error // ErrNoKey or ErrWrongKey
	Err   error // what was found; may be nil
	Next  string
}

func (e *Error) Error() string {
	msg := fmt.Sprintf("%v (%s)", e.Kind, e.Place)
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Hint is the next step.
func (e *Error) Hint() string { return e.Next }

// Is makes errors.Is true for the kind and for ErrUnavailable.
func (e *Error) Is(target error) bool { return target == e.Kind || target == vault.ErrUnavailable }

// Unwrap returns what was found.
func (e *Error) Unwrap() error { return e.Err }

// Options say where the master key of a store is kept.
type Options struct {
	// Setting is auto, keychain, passphrase, file:PATH or env:NAME. Default
	// auto: the keychain if it answers, else the file File.
	Setting string
	// Refuse is set when the setting cannot be believed, for example because the
	// configuration could not be read: no key is used or made then.
	Refuse error
	// File is where auto keeps the key when there is no keychain. Without it
	// auto means keychain.
	File string
	// Keychain is the operating system's by default.
	Keychain Keychain
	// KeychainBudget is how long a keychain may take to answer. Default 2 s.
	KeychainBudget time.Duration
	// Env reads the environment, for env:NAME and for a passphrase in
	// USHER_PASSPHRASE. Without it neither can be used.
	Env func(name string) (string, bool)
	// Passphrase asks a person. Without it a passphrase can only come from the
	// environment.
	Passphrase func(ctx context.Context, q PassphraseQuestion) (vault.Secret, error)
	// Shared says that others than this user may write the store, as with a database
	// server. A store that has no keys but records which keys should authenticate
	// is refused then, until a person makes its keys with Rotate: somebody may have
	// removed them.
	Shared bool
	// ScryptLog is the base-2 logarithm of scrypt's work for a new passphrase.
	// Default 17, which takes 128 MiB and a fraction of a second.
	ScryptLog int
}

func (o Options) withDefaults() Options {
	if o.Setting == "" {
		o.Setting = "auto"
	}
	if o.Keychain == nil {
		o.Keychain = SystemKeychain()
	}
	if o.KeychainBudget <= 0 {
		o.KeychainBudget = 2 * time.Second
	}
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	if o.ScryptLog <= 0 {
		o.ScryptLog = 17
	}
	return o
}

const (
	// unlockLimit bounds unlocking as a whole; a person may be typing.
	unlockLimit = 2 * time.Minute
	// refusalLife is how long a key that could not be had is not asked for
	// again: a keychain that hangs must not cost every request its budget.
	refusalLife = 5 * time.Second
)

// Keys is the [Sealer] of a store. Records are sealed with a random data key,
// which lies in the store itself, wrapped by the master key. The master key is
// looked for when the first record is written or read, and not before: a command
// that finds nothing in the store never makes a keychain ask.
//
// A store without keys gets its first one when something is written. Records that an
// older usher stored without authentication are authenticated when the keys are
// first used, see migrate; from then on records without it are refused.
type Keys struct {
	store   vault.Store // the store below the seal
	opt     Options
	chain   *timedKeychain
	flights singleflight.Group

	mu        sync.Mutex // guards the fields below
	open      *keyring
	masters   map[string][]byte // by lock id, so that nobody is asked twice
	phrase    vault.Secret
	refusal   error
	refusedAt time.Time
}

// New returns the keys of store, which must be the one below the seal.
// Nothing is read yet.
func New(store vault.Store, opt Options) *Keys {
	opt = opt.withDefaults()
	return &Keys{
		store: store, opt: opt, masters: map[string][]byte{},
		chain: newTimedKeychain(opt.Keychain, opt.KeychainBudget),
	}
}

// Sealing implements [Sealer]. It looks whether another process has changed the
// keys meanwhile, so that nothing is sealed with one that is about to go.
func (k *Keys) Sealing(ctx context.Context) (Sealing, error) {
	ring, err := k.ready(ctx, mayMake)
	if err != nil {
		return nil, err
	}
	return ring.seal, nil
}

// Open implements [Sealer].
func (k *Keys) Open(ctx context.Context, rec vault.Record) ([]byte, error) {
	if vault.HoldsSecrets(rec.Kind) {
		id, err := sealedWith(rec.Data)
		if err != nil {
			return nil, err
		}
		ring, err := k.ringWith(ctx, id)
		if err != nil {
			return nil, err
		}
		return openData(ring.keys[id], rec)
	}
	if !signed(rec.Data) {
		return nil, k.unsigned(ctx)
	}
	id, err := signedWith(rec.Data)
	if err != nil {
		return nil, err
	}
	ring, err := k.ringWith(ctx, id)
	if err != nil {
		return nil, err
	}
	return verifyData(ring.macs[id], rec)
}

// unsigned says what is wrong with a record without an authentication code. If this
// is the first use of the keys, the record may have been stored by an older usher:
// such records are authenticated now.
func (k *Keys) unsigned(ctx context.Context) error {
	if k.opened() != nil {
		return fmt.Errorf("%w: it carries no authentication code", vault.ErrTampered)
	}
	if _, err := k.ready(ctx, mayMake); err != nil {
		return err
	}
	return errReread
}

// ringWith returns keys with the data key id, reading the ring again if it is new.
func (k *Keys) ringWith(ctx context.Context, id keyID) (*keyring, error) {
	if ring := k.opened(); ring != nil && ring.keys[id] != nil {
		return ring, nil
	}
	ring, err := k.ready(ctx, mayNotMake)
	if errors.Is(err, vault.ErrNotFound) {
		return nil, fmt.Errorf("%w (%s): the store has no keys at all", vault.ErrUnknownKey, id)
	}
	if err != nil {
		return nil, err
	}
	if ring.keys[id] == nil {
		return nil, fmt.Errorf("%w (%s)", vault.ErrUnknownKey, id)
	}
	return ring, nil
}

// Unlock proves that the master key can be had and is the right one. A store
// that has no keys yet is fine.
func (k *Keys) Unlock(ctx context.Context) error {
	_, err := k.ready(ctx, mayNotMake)
	if errors.Is(err, vault.ErrNotFound) {
		return nil
	}
	return err
}

func (k *Keys) opened() *keyring {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open
}

// making says whether the first keys of a store may be made.
type making int

const (
	mayNotMake making = iota
	mayMake
	mustMake // a person wants it, whatever is in the store
)

// ready returns the keys as the store has them now. Without any it makes them if
// it may, else the error is ErrNotFound. All records are authenticated when it
// returns.
func (k *Keys) ready(ctx context.Context, m making) (*keyring, error) {
	rec, err := k.readRing(ctx)
	missing := errors.Is(err, vault.ErrNotFound)
	if missing && m != mustMake && k.opened() != nil {
		return nil, errKeysGone()
	}
	if err != nil && (!missing || m == mayNotMake) {
		return nil, err
	}
	k.mu.Lock()
	open, refusal := k.open, k.refusal
	if refusal != nil && (m == mustMake || time.Since(k.refusedAt) > refusalLife) {
		refusal = nil
	}
	k.mu.Unlock()
	if open != nil && open.version == rec.Version {
		return open, nil
	}
	if refusal != nil {
		return nil, refusal
	}
	return k.unlockOnce(ctx, rec, m)
}

// unlockOnce unlocks, or makes what there is to unlock, for all who wait for it:
// one question, one look into the keychain.
func (k *Keys) unlockOnce(ctx context.Context, rec vault.Record, m making) (*keyring, error) {
	done := k.flights.DoChan(fmt.Sprint(rec.Version, m == mustMake), func() (any, error) {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), unlockLimit)
		defer stop()
		ring, err := k.unlockNewest(ctx, rec, m)
		if err == nil && !ring.authentic {
			ring, err = k.upgrade(ctx)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if _, keyless := errors.AsType[*Error](err); keyless {
			k.refusal, k.refusedAt = err, time.Now()
		}
		if err != nil {
			return nil, err
		}
		k.open, k.refusal = ring, nil
		return ring, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case got := <-done:
		if got.Err != nil {
			return nil, got.Err
		}
		return got.Val.(*keyring), nil
	}
}

// unlockNewest unlocks the ring, which it makes if there is none. A key that does
// not fit may be newer than the ring that was read, if somebody is just changing
// both: then it reads again.
func (k *Keys) unlockNewest(ctx context.Context, rec vault.Record, m making) (*keyring, error) {
	if rec.Version == 0 {
		made, err := k.makeRing(ctx, m)
		if err != nil {
			return nil, err
		}
		rec = made
	}
	for {
		open, err := k.unlock(ctx, rec)
		if err == nil || !errors.Is(err, vault.ErrUnavailable) {
			return open, err
		}
		again, readErr := k.readRing(ctx)
		if readErr != nil || again.Version == rec.Version {
			return nil, err
		}
		rec = again
	}
}

// unlock reads the ring and opens its data keys with the master key.
func (k *Keys) unlock(ctx context.Context, rec vault.Record) (*keyring, error) {
	r, err := decodeRing(rec)
	if err != nil {
		return nil, err
	}
	lock, master, err := k.findMaster(ctx, r)
	if err != nil {
		return nil, err
	}
	return r.open(rec.Version, lock, master)
}

// findMaster returns a master key that fits one of the ring's locks.
func (k *Keys) findMaster(ctx context.Context, r *ring) (lock string, master []byte, err error) {
	k.mu.Lock()
	for _, l := range r.Locks {
		if known := k.masters[l.ID]; known != nil {
			lock, master = l.ID, known // the newest that is known
		}
	}
	k.mu.Unlock()
	if master != nil {
		return lock, master, nil
	}
	p, err := k.place(k.opt.Setting)
	if err != nil {
		return "", nil, err
	}
	master, err = p.find(ctx, r)
	if err != nil {
		return "", nil, err
	}
	lock = lockID(master)
	k.remember(lock, master)
	return lock, master, nil
}

func (k *Keys) remember(lock string, master []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.masters[lock] = master
}
