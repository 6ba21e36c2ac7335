package authntest

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Store is an authn.TokenStore in memory that counts reads.
type Store struct {
	sync.Mutex // guards what follows
	// Records are the tokens by id.
	Records map[string][]byte
	// Loads counts reads of one record and of the ids.
	Loads int
	// Fail is returned by every method while it is set.
	Fail error
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{Records: map[string][]byte{}} }

// Load returns a record.
func (m *Store) Load(_ context.Context, id string) ([]byte, error) {
	m.Lock()
	defer m.Unlock()
	m.Loads++
	return m.Records[id], m.Fail
}

// Save writes a record.
func (m *Store) Save(_ context.Context, id string, record []byte) error {
	m.Lock()
	defer m.Unlock()
	m.Records[id] = record
	return m.Fail
}

// Remove deletes a record.
func (m *Store) Remove(_ context.Context, id string) (bool, error) {
	m.Lock()
	defer m.Unlock()
	_, ok := m.Records[id]
	delete(m.Records, id)
	return ok, m.Fail
}

// All returns every record.
func (m *Store) All(context.Context) ([][]byte, error) {
	m.Lock()
	defer m.Unlock()
	var out [][]byte
	for _, r := range m.Records {
		out = append(out, r)
	}
	return out, m.Fail
}

// IDs returns the ids of all records.
func (m *Store) IDs(context.Context) ([]string, error) {
	m.Lock()
	defer m.Unlock()
	m.Loads++
	return slices.Collect(maps.Keys(m.Records)), m.Fail
}

// Reads is how often a record or the ids were read.
func (m *Store) Reads() int {
	m.Lock()
	defer m.Unlock()
	return m.Loads
}
