package process

import "sync/atomic"

// Spare is a shim process that is started ahead of time, so that starting a child does
// not wait for it: the shim takes most of the time of a start. It knows nothing of the
// child yet, holds no secret, and exits with this process like every shim. A nil Spare
// is valid and has no effect.
type Spare struct {
	taken atomic.Bool
	pipes *pipes
	guard *guard
}

// NewSpare starts a shim, see Options.Shim, and does not wait until it is there. label
// stands beside it in a list of processes: the name of the program it is meant for.
// Close it.
//
// It returns nil where there are no shims, and when it cannot be started: the start of
// the child then fails for the same reason, and says so.
func NewSpare(shim, label string) *Spare {
	if shim == "" {
		return nil
	}
	p, err := openPipes()
	if err != nil {
		return nil
	}
	g, err := openGuard(shim, label, p.child)
	if err != nil {
		p.close()
		return nil
	}
	p.closeChild()
	return &Spare{pipes: p, guard: g}
}

// take returns the shim and its pipes to the first who asks, and nothing to others.
func (s *Spare) take() (*pipes, *guard) {
	if s == nil || s.taken.Swap(true) {
		return nil, nil
	}
	return s.pipes, s.guard
}

// Close ends a shim that nobody took. It may be called more than once.
func (s *Spare) Close() {
	p, g := s.take()
	if g == nil {
		return
	}
	g.shim.kill() // it has nothing that it could leave behind
	_, _ = g.shim.wait()
	g.link.Close()
	p.close()
}
