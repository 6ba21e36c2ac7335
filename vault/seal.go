package vault

import (
	"context"
	"errors"
	"fmt"
)

// Sealer encrypts the data of records that hold secrets. The key is bound in,
// so that a sealed value moved to another record does not open. Both methods
// may be called from any goroutine and must not keep or change their arguments.
type Sealer interface {
	Seal(ctx context.Context, key Key, plain []byte) ([]byte, error)
	Open(ctx context.Context, key Key, sealed []byte) ([]byte, error)
}

// Sealed returns a view of store through which records of the kinds that
// [HoldsSecrets] names are sealed on their way in and opened on their way out.
// A record that does not open stays where it is and is reported as a
// [*CorruptError]; when only the key cannot be had, the error is the sealer's.
func Sealed(store Store, sealer Sealer) Store { return &sealedStore{store, sealer} }

// Unsealed returns the store below the seal, or store itself when it has none:
// for looking at names and for removing what does not open. What is read from it
// is sealed.
func Unsealed(store Store) Store {
	if s, ok := store.(*sealedStore); ok {
		return s.Store
	}
	return store
}

type sealedStore struct {
	Store
	sealer Sealer
}

func (s *sealedStore) Get(ctx context.Context, key Key) (Record, error) {
	rec, err := s.Store.Get(ctx, key)
	if err != nil {
		return Record{}, err
	}
	return s.open(ctx, rec)
}

func (s *sealedStore) Put(ctx context.Context, key Key, data []byte, ifVersion int64) (Record, error) {
	sealed, err := s.seal(ctx, key, data)
	if err != nil {
		return Record{}, err
	}
	rec, err := s.Store.Put(ctx, key, sealed, ifVersion)
	return plain(rec, data, err)
}

func (s *sealedStore) PutFenced(ctx context.Context, key Key, data []byte, ifVersion int64, lease Lease) (Record, error) {
	sealed, err := s.seal(ctx, key, data)
	if err != nil {
		return Record{}, err
	}
	rec, err := s.Store.PutFenced(ctx, key, sealed, ifVersion, lease)
	return plain(rec, data, err)
}

// Take opens the record before it removes it, so that one that does not open is
// not lost.
func (s *sealedStore) Take(ctx context.Context, key Key) (Record, error) {
	for {
		rec, err := s.Get(ctx, key)
		if err != nil {
			return Record{}, err
		}
		err = s.Store.Delete(ctx, key, rec.Version)
		if err == nil {
			return rec, nil
		}
		if !errors.Is(err, ErrConflict) {
			return Record{}, err
		}
	}
}

func (s *sealedStore) List(ctx context.Context, kind, principal string) ([]Record, error) {
	sealed, err := s.Store.List(ctx, kind, principal)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return nil, err
	}
	recs := make([]Record, 0, len(sealed))
	for _, rec := range sealed {
		opened, openErr := s.open(ctx, rec)
		if openErr != nil && !errors.Is(openErr, ErrCorrupt) {
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
	if _, err := s.sealer.Seal(ctx, LocalKey("ready", "probe"), nil); err != nil {
		return fmt.Errorf("check that records can be sealed: %w", err)
	}
	return s.Store.Ready(ctx, room+sealOverhead)
}

// notNow says whether the record may well open later, so that it must not be
// taken for a damaged one.
func notNow(err error) bool {
	for _, passing := range []error{ErrUnavailable, ErrNewer, ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

func (s *sealedStore) seal(ctx context.Context, key Key, data []byte) ([]byte, error) {
	if !HoldsSecrets(key.Kind) {
		return data, nil
	}
	sealed, err := s.sealer.Seal(ctx, key, data)
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", key, err)
	}
	return sealed, nil
}

func (s *sealedStore) open(ctx context.Context, rec Record) (Record, error) {
	if !HoldsSecrets(rec.Kind) {
		return rec, nil
	}
	data, err := s.sealer.Open(ctx, rec.Key, rec.Data)
	if notNow(err) {
		return Record{}, fmt.Errorf("open %s: %w", rec.Key, err)
	}
	if err != nil {
		return Record{}, &CorruptError{Key: rec.Key, Err: fmt.Errorf("it does not open: %w", err)}
	}
	rec.Data = data
	return rec, nil
}

// plain puts the caller's data back into what was stored sealed.
func plain(rec Record, data []byte, err error) (Record, error) {
	if err != nil {
		return Record{}, err
	}
	rec.Data = append([]byte{}, data...)
	return rec, nil
}
