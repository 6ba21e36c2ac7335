package supervise

import (
	"context"
	"slices"
	"sync"
)

// Places are the seats for child processes. A caller that finds none free waits in line.
// There are none before Resize.
type Places struct {
	mu      sync.Mutex // guards what follows
	max     int
	used    int
	leaving int // taken, but known to become free: their children are being stopped
	line    []chan struct{}
}

// Take waits for a place. makeRoom is called, without a lock, when there is none.
func (p *Places) Take(ctx context.Context, makeRoom func()) error {
	p.mu.Lock()
	if p.used < p.max && len(p.line) == 0 {
		p.used++
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	p.line = append(p.line, turn)
	p.mu.Unlock()
	makeRoom()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.line, turn); i >= 0 {
		p.line = slices.Delete(p.line, i, i+1)
		return ctx.Err()
	}
	// The place came at the same moment; it goes to the next.
	p.used--
	p.serve()
	return ctx.Err()
}

// Free gives a place back.
func (p *Places) Free(announced bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if announced {
		p.leaving--
	}
	p.used--
	p.serve()
}

func (p *Places) serve() {
	for p.used < p.max && len(p.line) > 0 {
		p.used++
		close(p.line[0])
		p.line = p.line[1:]
	}
}

// Announce says that a place is about to be freed.
func (p *Places) Announce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving++
}

// Wanted reports whether somebody waits for whom no place is about to be freed.
func (p *Places) Wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.line) > p.leaving
}

// Resize changes how many there are.
func (p *Places) Resize(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.max = n
	p.serve()
}

// Unused reports whether no place is taken, about to be freed or waited for.
func (p *Places) Unused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used == 0 && p.leaving == 0 && len(p.line) == 0
}
