package vault

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// Keeper is what a store offers, beyond [Store], to code that looks after all of
// it. All stores of this module do; a seal hides it, see [Unsealed].
type Keeper interface {
	// Kinds lists the kinds of which there are records, in order.
	Kinds(ctx context.Context) ([]string, error)

	// Keys lists the keys of all records of a kind, in the order of List. Damaged
	// records have one too.
	Keys(ctx context.Context, kind string) ([]Key, error)

	// PutAs is Put, or PutFenced when lease is not nil, of data that depends on
	// the version which the record gets. data must be free of side effects, quick,
	// and must not use the store: it may run more than once, inside a transaction.
	PutAs(ctx context.Context, key Key, data func(version int64) []byte, ifVersion int64, lease *Lease) (Record, error)

	// Rewrite replaces the bytes of a record by others that mean the same. Its
	// version and time stay and nobody is told, so that a writer that is about to
	// write the record is not in the way and is not put off. The errors are
	// those of PutFenced.
	Rewrite(ctx context.Context, key Key, data []byte, ifVersion int64, lease Lease) error
}

// An Unsealer is a [Store] that encrypts or authenticates records on their way into
// another one; vault/keys has the one that usher uses.
type Unsealer interface {
	Store
	// Unsealed returns the store below. What is read from it is sealed.
	Unsealed() Store
}

// Unsealed returns the store below the seal, or store itself when it has none:
// for looking at names and for removing what does not open.
func Unsealed(store Store) Store {
	if s, ok := store.(Unsealer); ok {
		return s.Unsealed()
	}
	return store
}

var _ Keeper = (*Memory)(nil)

// Kinds implements [Keeper].
func (m *Memory) Kinds(ctx context.Context) ([]string, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	kinds := []string{}
	for key := range m.records {
		if !slices.Contains(kinds, key.Kind) {
			kinds = append(kinds, key.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds, nil
}

// Keys implements [Keeper].
func (m *Memory) Keys(ctx context.Context, kind string) ([]Key, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return selected(maps.Keys(m.records), kind, ""), nil
}

// PutAs implements [Keeper].
func (m *Memory) PutAs(ctx context.Context, key Key, data func(version int64) []byte, ifVersion int64, lease *Lease) (Record, error) {
	return m.put(ctx, key, data, ifVersion, lease)
}

// Rewrite implements [Keeper].
func (m *Memory) Rewrite(ctx context.Context, key Key, data []byte, ifVersion int64, lease Lease) error {
	if err := cmp.Or(key.Validate(), ValidData(data)); err != nil {
		return err
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if !m.leases[lease.Name].is(lease) {
		return fmt.Errorf("rewrite %s: %w", key, ErrFenced)
	}
	rec, ok := m.records[key]
	if !ok || rec.Version != ifVersion {
		return fmt.Errorf("rewrite %s: %w", key, ErrConflict)
	}
	rec.Data = data
	m.records[key] = copied(rec)
	return nil
}
