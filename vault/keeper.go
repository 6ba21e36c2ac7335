package vault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Keeper is what a store offers, beyond [Store], to whoever looks after all of
// it. All stores of this module do; a seal hides it, see [Unsealed].
type Keeper interface {
	// Kinds lists the kinds of which there are records, in order.
	Kinds(ctx context.Context) ([]string, error)

	// Rewrite replaces the bytes of a record by others that mean the same. Its
	// version and time stay and nobody is told, so that whoever is about to
	// write the record is not in the way and is not put off. The errors are
	// those of PutFenced.
	Rewrite(ctx context.Context, key Key, data []byte, ifVersion int64, lease Lease) error
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
