package host

import (
	"context"
	"slices"
	"sync"
)

// places are the seats for child processes. Whoever finds none free waits in line.
type places struct {
	mu      sync.Mutex // guards what follows
	max     int
	used    int
	leaving int // taken, but known to become free: their children are being stopped
	line    []chan struct{}
}

// take waits for a place. makeRoom is called, without a lock, when there is none.
func (p *places) take(ctx context.Context, makeRoom func()) error {
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

// free gives a place back.
func (p *places) free(announced bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if announced {
		p.leaving--
	}
	p.used--
	p.serve()
}

func (p *places) serve() {
	for p.used < p.max && len(p.line) > 0 {
		p.used++
		close(p.line[0])
		p.line = p.line[1:]
	}
}

// announce says that a place is about to be freed.
func (p *places) announce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving++
}

// wanted reports whether somebody waits for whom no place is about to be freed.
func (p *places) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.line) > p.leaving
}

// resize changes how many there are.
func (p *places) resize(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.max = n
	p.serve()
}
