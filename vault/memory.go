package vault

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/usher-mcp/usher/event"
)

// Memory is a [Store] that forgets everything when it is closed: for tests, for
// demonstrations and for programs that embed usher and want nothing on disk.
type Memory struct {
	changes event.Bus[Change]
	holder  string

	mu       sync.Mutex // guards everything below
	closed   bool
	sequence int64
	records  map[Key]Record
	counters map[Key]int64
	leases   map[string]memoryLease
	clock    Clock // of leases
	audit    []AuditEntry
	auditSeq int64
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return NewMemoryAt(Now) }

// NewMemoryAt is [NewMemory] with a clock for leases of its own.
func NewMemoryAt(clock Clock) *Memory {
	return &Memory{
		clock:    clock,
		holder:   NewHolder(),
		records:  make(map[Key]Record),
		counters: make(map[Key]int64),
		leases:   make(map[string]memoryLease),
	}
}

// lock takes the lock unless the caller has given up or the store is closed.
func (m *Memory) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	return nil
}

// Get implements [Records].
func (m *Memory) Get(ctx context.Context, key Key) (Record, error) {
	if err := key.Validate(); err != nil {
		return Record{}, err
	}
	if err := m.lock(ctx); err != nil {
		return Record{}, err
	}
	defer m.mu.Unlock()
	rec, ok := m.records[key]
	if !ok {
		return Record{}, fmt.Errorf("get %s: %w", key, ErrNotFound)
	}
	return copied(rec), nil
}

// Put implements [Records].
func (m *Memory) Put(ctx context.Context, key Key, data []byte, ifVersion int64) (Record, error) {
	return m.put(ctx, key, fixed(data), ifVersion, nil)
}

// PutFenced implements [Records].
func (m *Memory) PutFenced(ctx context.Context, key Key, data []byte, ifVersion int64, lease Lease) (Record, error) {
	return m.put(ctx, key, fixed(data), ifVersion, &lease)
}

// fixed is data that does not depend on the version.
func fixed(data []byte) func(int64) []byte { return func(int64) []byte { return data } }

func (m *Memory) put(ctx context.Context, key Key, data func(int64) []byte, ifVersion int64, fence *Lease) (Record, error) {
	if err := key.Validate(); err != nil {
		return Record{}, err
	}
	if err := m.lock(ctx); err != nil {
		return Record{}, err
	}
	defer m.mu.Unlock()
	if fence != nil && !m.leases[fence.Name].is(*fence) {
		return Record{}, fmt.Errorf("put %s: %w", key, ErrFenced)
	}
	if m.records[key].Version != ifVersion {
		return Record{}, fmt.Errorf("put %s: %w", key, ErrConflict)
	}
	rec := Record{Key: key, Version: m.sequence + 1, Data: data(m.sequence + 1), Updated: now()}
	if err := ValidData(rec.Data); err != nil {
		return Record{}, err
	}
	m.sequence++
	m.records[key] = copied(rec)
	m.changes.Publish(Change{Key: key, Version: rec.Version})
	return copied(rec), nil
}

// Delete implements [Records].
func (m *Memory) Delete(ctx context.Context, key Key, ifVersion int64) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	rec, ok := m.records[key]
	if !ok {
		return fmt.Errorf("delete %s: %w", key, ErrNotFound)
	}
	if rec.Version != ifVersion {
		return fmt.Errorf("delete %s: %w", key, ErrConflict)
	}
	m.remove(key)
	return nil
}

// Take implements [Records].
func (m *Memory) Take(ctx context.Context, key Key) (Record, error) {
	if err := key.Validate(); err != nil {
		return Record{}, err
	}
	if err := m.lock(ctx); err != nil {
		return Record{}, err
	}
	defer m.mu.Unlock()
	rec, ok := m.records[key]
	if !ok {
		return Record{}, fmt.Errorf("take %s: %w", key, ErrNotFound)
	}
	m.remove(key)
	return rec, nil
}

func (m *Memory) remove(key Key) {
	delete(m.records, key)
	m.changes.Publish(Change{Key: key})
}

// List implements [Records].
func (m *Memory) List(ctx context.Context, kind, principal string) ([]Record, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	recs := []Record{}
	for _, key := range selected(maps.Keys(m.records), kind, principal) {
		recs = append(recs, copied(m.records[key]))
	}
	return recs, nil
}

// Versions implements [Records].
func (m *Memory) Versions(ctx context.Context, kind, principal string) (map[string]int64, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	versions := map[string]int64{}
	for key, rec := range m.records {
		if key.Kind == kind && key.Principal == principal {
			versions[key.Name] = rec.Version
		}
	}
	return versions, nil
}

// Watch implements [Records].
func (m *Memory) Watch(ctx context.Context) (*event.Subscription[Change], error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.changes.Subscribe(0), nil
}

// Ready implements [Store].
func (m *Memory) Ready(ctx context.Context, _ int) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	m.mu.Unlock()
	return nil
}

// Close implements [Store].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.changes.Close()
	return nil
}

func copied(rec Record) Record {
	rec.Data = append([]byte{}, rec.Data...)
	return rec
}

// now is the store's clock, as coarse as a database's.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// selected returns the keys of kind and principal (any when empty) in the order
// of List.
func selected(keys func(func(Key) bool), kind, principal string) []Key {
	var found []Key
	for key := range keys {
		if key.Kind == kind && (principal == "" || key.Principal == principal) {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Name, b.Name))
	})
	return found
}
