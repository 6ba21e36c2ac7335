package keys

import (
	"context"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/vault"
)

// Sealer protects records: it encrypts the data of the kinds that [vault.HoldsSecrets]
// names and authenticates the data of all others. The record's key and version are
// bound in, so that a value moved to another record, or put back after a newer one
// was written, does not open. Both methods may be called from any goroutine and
// must not keep or change their arguments.
type Sealer interface {
	// Sealing returns the function that protects records now. The function is pure
	// and does no I/O, so that it can run inside a transaction, when the version is
	// known. It is used at once and not kept.
	Sealing(ctx context.Context) (Sealing, error)

	// Open checks a record and returns its plain data.
	Open(ctx context.Context, rec vault.Record) ([]byte, error)
}

// Sealing returns the data of a record as it is stored.
type Sealing func(key vault.Key, version int64, plain []byte) []byte

// errReread tells that records which were stored before records were authenticated
// have just been authenticated: what was read before is outdated.
var errReread = errors.New("the record has been authenticated meanwhile; read it again")

// Sealed returns a view of store through which records are encrypted or
// authenticated on their way in and checked on their way out, see [Sealer]. A
// record that does not open stays where it is and is reported as a
// [*vault.CorruptError]; when only the key cannot be had, the error is the sealer's.
//
// A record of a kind that decides what others may do (tokens, approvals, pins) is
// also refused when this process has already seen a newer version of it, or its
// removal. Beyond that a database writer can still remove records, or put back the
// whole row of an older version before a process starts: no code in the record can
// show that.
//
// A store that is not a [vault.Keeper] has its secrets encrypted without the version, and
// the rest stored as it is.
func Sealed(store vault.Store, sealer Sealer) vault.Store {
	keeper, _ := store.(vault.Keeper)
	return &sealedStore{Store: store, sealer: sealer, keeper: keeper}
}

type sealedStore struct {
	vault.Store
	sealer Sealer
	keeper vault.Keeper // nil: the store cannot tell a version before it writes
	newest newestVersions
}

// Unsealed implements [vault.Unsealer].
func (s *sealedStore) Unsealed() vault.Store { return s.Store }

// protects says whether records of kind are changed on their way in.
func (s *sealedStore) protects(kind string) bool {
	return vault.HoldsSecrets(kind) || vault.Authenticated(kind) && s.keeper != nil
}

func (s *sealedStore) Get(ctx context.Context, key vault.Key) (vault.Record, error) {
	rec, err := s.get(ctx, key)
	if errors.Is(err, errReread) {
		rec, err = s.get(ctx, key)
	}
	return rec, err
}

func (s *sealedStore) get(ctx context.Context, key vault.Key) (vault.Record, error) {
	mark := s.newest.mark()
	rec, err := s.Store.Get(ctx, key)
	if errors.Is(err, vault.ErrNotFound) {
		s.newest.gone(key, mark)
	}
	if err != nil {
		return vault.Record{}, err
	}
	return s.open(ctx, rec, mark)
}

func (s *sealedStore) Put(ctx context.Context, key vault.Key, data []byte, ifVersion int64) (vault.Record, error) {
	return s.put(ctx, key, data, ifVersion, nil)
}

func (s *sealedStore) PutFenced(ctx context.Context, key vault.Key, data []byte, ifVersion int64, lease vault.Lease) (vault.Record, error) {
	return s.put(ctx, key, data, ifVersion, &lease)
}

func (s *sealedStore) put(ctx context.Context, key vault.Key, data []byte, ifVersion int64, lease *vault.Lease) (vault.Record, error) {
	seal := func(_ vault.Key, _ int64, data []byte) []byte { return data }
	if s.protects(key.Kind) {
		var err error
		if seal, err = s.sealer.Sealing(ctx); err != nil {
			return vault.Record{}, fmt.Errorf("seal %s: %w", key, err)
		}
	}
	var rec vault.Record
	var err error
	switch {
	case s.keeper != nil:
		rec, err = s.keeper.PutAs(ctx, key, func(version int64) []byte { return seal(key, version, data) }, ifVersion, lease)
	case lease != nil:
		rec, err = s.Store.PutFenced(ctx, key, seal(key, 0, data), ifVersion, *lease)
	default:
		rec, err = s.Store.Put(ctx, key, seal(key, 0, data), ifVersion)
	}
	if err != nil {
		return vault.Record{}, err
	}
	s.newest.saw(key, rec.Version)
	rec.Data = append([]byte{}, data...)
	return rec, nil
}

// Delete implements [vault.Records].
func (s *sealedStore) Delete(ctx context.Context, key vault.Key, ifVersion int64) error {
	err := s.Store.Delete(ctx, key, ifVersion)
	if err == nil {
		s.newest.saw(key, ifVersion+1)
	}
	return err
}

// Take opens the record before it removes it, so that a secret that does not open
// is not lost. A record without secrets that is not authentic is removed and
// reported as a [*vault.CorruptError]: it was never one of ours.
func (s *sealedStore) Take(ctx context.Context, key vault.Key) (vault.Record, error) {
	for {
		rec, err := s.Get(ctx, key)
		if errors.Is(err, vault.ErrTampered) && vault.Authenticated(key.Kind) {
			if _, takeErr := s.Store.Take(ctx, key); takeErr != nil {
				return vault.Record{}, takeErr
			}
		}
		if err != nil {
			return vault.Record{}, err
		}
		err = s.Delete(ctx, key, rec.Version)
		if err == nil {
			return rec, nil
		}
		if !errors.Is(err, vault.ErrConflict) {
			return vault.Record{}, err
		}
	}
}

func (s *sealedStore) List(ctx context.Context, kind, principal string) ([]vault.Record, error) {
	recs, err := s.list(ctx, kind, principal)
	if errors.Is(err, errReread) {
		recs, err = s.list(ctx, kind, principal)
	}
	return recs, err
}

func (s *sealedStore) list(ctx context.Context, kind, principal string) ([]vault.Record, error) {
	mark := s.newest.mark()
	sealed, err := s.Store.List(ctx, kind, principal)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return nil, err
	}
	recs := make([]vault.Record, 0, len(sealed))
	for _, rec := range sealed {
		opened, openErr := s.open(ctx, rec, mark)
		if openErr != nil && !errors.Is(openErr, vault.ErrCorrupt) {
			return nil, openErr
		}
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		recs = append(recs, opened)
	}
	return recs, err
}

// Ready also proves that the key can be had: a successor of what is about to be
// spent will have to be sealed.
func (s *sealedStore) Ready(ctx context.Context, room int) error {
	if _, err := s.sealer.Sealing(ctx); err != nil {
		return fmt.Errorf("check that records can be sealed: %w", err)
	}
	return s.Store.Ready(ctx, room+sealOverhead)
}

// notNow says whether the record may well open later, so that it must not be
// taken for a damaged one.
func notNow(err error) bool {
	for _, passing := range []error{vault.ErrUnavailable, vault.ErrNewer, vault.ErrClosed, context.Canceled, context.DeadlineExceeded, errReread} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// open checks the record and returns it with its plain data. mark is from before
// the record was read.
func (s *sealedStore) open(ctx context.Context, rec vault.Record, mark int64) (vault.Record, error) {
	if !s.protects(rec.Kind) {
		return rec, nil
	}
	bound := rec
	if s.keeper == nil {
		bound.Version = 0
	}
	data, err := s.sealer.Open(ctx, bound)
	if notNow(err) {
		return vault.Record{}, fmt.Errorf("open %s: %w", rec.Key, err)
	}
	if err == nil {
		err = s.newest.check(rec, mark)
	}
	if err != nil {
		return vault.Record{}, &vault.CorruptError{Key: rec.Key, Err: fmt.Errorf("it does not open: %w", err)}
	}
	rec.Data = data
	return rec, nil
}
