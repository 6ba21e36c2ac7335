package catalog

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/vault"
)

// WriteBehind is a host.Memory that queues writes and sends them to the store together
// a moment later, so that no connection waits for the store.
type WriteBehind struct {
	stored *stored

	mu      sync.Mutex // guards what follows
	eras    map[string]string
	inStore map[string]string // versions that the store is known to have
	tools   map[host.Key]*queuedCatalog
	running bool
	closed  bool
	stop    chan struct{}
	done    sync.WaitGroup
}

// queuedCatalog never changes; a newer one replaces it.
type queuedCatalog struct {
	digest  string
	catalog host.Catalog
}

const (
	// flushDelay is how long a write stays in the queue.
	flushDelay = 200 * time.Millisecond
	// flushTimeout bounds how long the store may take for all of them.
	flushTimeout = 5 * time.Second
	// flushWorkers is how many writes run at once: writes that run together wait for
	// the disk once.
	flushWorkers = 16
)

// NewWriteBehind returns a queue in front of store. Close it before the store.
func NewWriteBehind(store vault.Records) *WriteBehind {
	return &WriteBehind{stored: newStored(store), eras: map[string]string{}, inStore: map[string]string{}, tools: map[host.Key]*queuedCatalog{}, stop: make(chan struct{})}
}

// Era implements host.Memory.
func (s *WriteBehind) Era(ctx context.Context, digest string) (string, bool) {
	s.mu.Lock()
	version, ok := s.eras[digest]
	s.mu.Unlock()
	if ok {
		return version, true
	}
	version, ok = s.stored.Era(ctx, digest)
	if ok {
		s.mu.Lock()
		s.inStore[digest] = version
		s.mu.Unlock()
	}
	return version, ok
}

// RememberEra implements host.Memory. A version that the store is known to have is not
// queued: most connections find what the last one found.
func (s *WriteBehind) RememberEra(_ context.Context, digest, version string) {
	s.mu.Lock()
	same := s.inStore[digest] == version
	if !same {
		delete(s.inStore, digest)
	}
	s.mu.Unlock()
	if !same {
		s.enqueue(func() { s.eras[digest] = version })
	}
}

// Tools implements host.Memory.
func (s *WriteBehind) Tools(ctx context.Context, k host.Key, digest string) (host.Catalog, bool) {
	s.mu.Lock()
	found, ok := s.tools[k]
	s.mu.Unlock()
	if ok {
		c := found.catalog
		c.Stale = found.digest != digest
		return c, true
	}
	return s.stored.Tools(ctx, k, digest)
}

// RememberTools implements host.Memory.
func (s *WriteBehind) RememberTools(_ context.Context, k host.Key, digest string, c host.Catalog) {
	s.enqueue(func() { s.tools[k] = &queuedCatalog{digest, c} })
}

// Accounts returns the accounts of a principal, as server@label, whose catalogs are in
// the queue.
func (s *WriteBehind) Accounts(principal string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for k := range s.tools {
		if k.Principal == principal && k.Account != "" {
			out = append(out, accountName(k))
		}
	}
	return out
}

// Forget drops the queued catalog of an account.
func (s *WriteBehind) Forget(k host.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tools, k)
}

// enqueue adds a write and starts the flusher unless it runs.
func (s *WriteBehind) enqueue(add func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	add()
	if !s.running {
		s.running = true
		s.done.Go(s.flush)
	}
}

// flush writes the queue to the store until it is empty.
func (s *WriteBehind) flush() {
	for {
		pause := time.NewTimer(flushDelay)
		select {
		case <-pause.C:
		case <-s.stop:
			pause.Stop()
		}
		s.mu.Lock()
		eras, tools := maps.Clone(s.eras), maps.Clone(s.tools)
		s.running = len(eras)+len(tools) > 0
		s.mu.Unlock()
		if len(eras)+len(tools) == 0 {
			return
		}
		s.write(eras, tools)
	}
}

// write sends queued values to the store. Reads see them in the queue until then.
func (s *WriteBehind) write(eras map[string]string, tools map[host.Key]*queuedCatalog) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	var jobs []func()
	for digest, version := range eras {
		jobs = append(jobs, func() {
			s.stored.RememberEra(ctx, digest, version)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.eras[digest] == version {
				delete(s.eras, digest)
			}
		})
	}
	for k, one := range tools {
		jobs = append(jobs, func() {
			s.stored.RememberTools(ctx, k, one.digest, one.catalog)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.tools[k] == one {
				delete(s.tools, k)
			}
		})
	}
	var wg sync.WaitGroup
	for chunk := range slices.Chunk(jobs, len(jobs)/flushWorkers+1) {
		wg.Go(func() {
			for _, job := range chunk {
				job()
			}
		})
	}
	wg.Wait()
}

// Close writes what is left in the queue. Later writes are ignored.
func (s *WriteBehind) Close() {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if !was {
		close(s.stop)
	}
	s.done.Wait()
}
