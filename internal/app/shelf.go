package app

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/usher-mcp/usher/host"
)

// shelf stands between the host and its memory: what is to be kept is put down here
// and carried to the store a moment later, together with what came meanwhile. Nobody
// who connects waits for that. All of it can be learned anew, so a process that is
// killed may lose the last moment's.
type shelf struct {
	memory *memory

	mu      sync.Mutex // guards what follows
	eras    map[string]string
	known   map[string]string // eras as the store had them
	tools   map[host.Key]*shelved
	running bool
	closed  bool
	stop    chan struct{}
	done    sync.WaitGroup
}

// shelved never changes; something newer takes its place.
type shelved struct {
	digest  string
	catalog host.Catalog
}

const (
	// shelfPause is how long things stay on the shelf.
	shelfPause = 200 * time.Millisecond
	// shelfTimeout bounds how long the store may take for all of them.
	shelfTimeout = 5 * time.Second
	// shelfHands is how many are carried at once: what is written together waits for
	// the disk once.
	shelfHands = 16
)

func newShelf(m *memory) *shelf {
	return &shelf{memory: m, eras: map[string]string{}, known: map[string]string{}, tools: map[host.Key]*shelved{}, stop: make(chan struct{})}
}

// Era implements host.Memory.
func (s *shelf) Era(ctx context.Context, digest string) (string, bool) {
	s.mu.Lock()
	version, ok := s.eras[digest]
	s.mu.Unlock()
	if ok {
		return version, true
	}
	version, ok = s.memory.Era(ctx, digest)
	if ok {
		s.mu.Lock()
		s.known[digest] = version
		s.mu.Unlock()
	}
	return version, ok
}

// RememberEra implements host.Memory. What the store was found to have is not put
// down: most connections find what the last one found.
func (s *shelf) RememberEra(_ context.Context, digest, version string) {
	s.mu.Lock()
	same := s.known[digest] == version
	if !same {
		delete(s.known, digest)
	}
	s.mu.Unlock()
	if !same {
		s.put(func() { s.eras[digest] = version })
	}
}

// Tools implements host.Memory.
func (s *shelf) Tools(ctx context.Context, k host.Key, digest string) (host.Catalog, bool) {
	s.mu.Lock()
	found, ok := s.tools[k]
	s.mu.Unlock()
	if ok {
		c := found.catalog
		c.Stale = found.digest != digest
		return c, true
	}
	return s.memory.Tools(ctx, k, digest)
}

// RememberTools implements host.Memory.
func (s *shelf) RememberTools(_ context.Context, k host.Key, digest string, c host.Catalog) {
	s.put(func() { s.tools[k] = &shelved{digest, c} })
}

// accounts are those of a principal, as server@label, of which something is here.
func (s *shelf) accounts(principal string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for k := range s.tools {
		if k.Principal == principal && k.Account != "" {
			out = append(out, k.Server+"@"+k.Account)
		}
	}
	return out
}

// forget drops what waits to be written about an account.
func (s *shelf) forget(k host.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tools, k)
}

// put takes something in and sees to it that it is carried away.
func (s *shelf) put(add func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	add()
	if !s.running {
		s.running = true
		s.done.Go(s.clear)
	}
}

// clear carries everything to the store, until nothing is left.
func (s *shelf) clear() {
	for {
		pause := time.NewTimer(shelfPause)
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
		s.carry(eras, tools)
	}
}

// carry writes things down. They stay visible until they are.
func (s *shelf) carry(eras map[string]string, tools map[host.Key]*shelved) {
	ctx, cancel := context.WithTimeout(context.Background(), shelfTimeout)
	defer cancel()
	var jobs []func()
	for digest, version := range eras {
		jobs = append(jobs, func() {
			s.memory.RememberEra(ctx, digest, version)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.eras[digest] == version {
				delete(s.eras, digest)
			}
		})
	}
	for k, one := range tools {
		jobs = append(jobs, func() {
			s.memory.RememberTools(ctx, k, one.digest, one.catalog)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.tools[k] == one {
				delete(s.tools, k)
			}
		})
	}
	var wg sync.WaitGroup
	for hand := range slices.Chunk(jobs, len(jobs)/shelfHands+1) {
		wg.Go(func() {
			for _, job := range hand {
				job()
			}
		})
	}
	wg.Wait()
}

// close carries away what is left.
func (s *shelf) close() {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if !was {
		close(s.stop)
	}
	s.done.Wait()
}
