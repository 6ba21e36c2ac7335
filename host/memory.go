package host

import (
	"context"
	"sync"
)

// memory is the Memory of a Host that was given none.
type memory struct {
	mu    sync.Mutex // guards what follows
	eras  map[string]string
	tools map[memoryKey]Catalog
}

type memoryKey struct {
	Key
	digest string
}

func newMemory() *memory {
	return &memory{eras: map[string]string{}, tools: map[memoryKey]Catalog{}}
}

func (m *memory) Era(_ context.Context, digest string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.eras[digest]
	return v, ok
}

func (m *memory) RememberEra(_ context.Context, digest, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.eras[digest] = version
}

func (m *memory) Tools(_ context.Context, k Key, digest string) (Catalog, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.tools[memoryKey{k.Shared(), digest}]
	return c, ok
}

func (m *memory) RememberTools(_ context.Context, k Key, digest string, c Catalog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools[memoryKey{k.Shared(), digest}] = c
}
