package vault

import (
	"context"
	"errors"
)

// Update replaces the record's data by what change returns for the present
// data (nil when there is none), and does so again whenever somebody else was
// faster. change must be free of side effects; its error is returned as it is.
func Update(ctx context.Context, s Records, key Key, change func(old []byte) ([]byte, error)) (Record, error) {
	for {
		old, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Record{}, err
		}
		data, err := change(old.Data)
		if err != nil {
			return Record{}, err
		}
		rec, err := s.Put(ctx, key, data, old.Version)
		if err == nil || !errors.Is(err, ErrConflict) {
			return rec, err
		}
	}
}

// overwrite stores data whatever was there; the last writer wins. A damaged
// predecessor counts as absent, which is right for caches and decisions that
// can be made again.
func overwrite(ctx context.Context, s Records, key Key, data []byte) error {
	keep := func([]byte) ([]byte, error) { return data, nil }
	_, err := Update(ctx, s, key, keep)
	if errors.Is(err, ErrCorrupt) {
		// Reading set a damaged record aside, so the second try finds none.
		_, err = Update(ctx, s, key, keep)
	}
	if errors.Is(err, ErrCorrupt) {
		err = replace(ctx, s, key, data)
	}
	return err
}

// replace stores data in place of a record that does not open.
func replace(ctx context.Context, s Records, key Key, data []byte) error {
	for {
		versions, err := s.Versions(ctx, key.Kind, key.Principal)
		if err != nil {
			return err
		}
		_, err = s.Put(ctx, key, data, versions[key.Name])
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// forget removes the record if it is there.
func forget(ctx context.Context, s Records, key Key) error {
	_, err := s.Take(ctx, key)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) {
		return nil
	}
	return err
}
