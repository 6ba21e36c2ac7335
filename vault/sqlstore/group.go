package sqlstore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// group gathers the writes of one process that wait for their turn, so that they
// share one transaction and with it one wait for the disk. Each is still durable when
// it returns.
type group struct {
	mu      sync.Mutex // guards waiting
	waiting []*pending
}

// pending is a write that waits. What it leaves in err may be read once done is
// closed.
type pending struct {
	ctx  context.Context
	care care
	what string
	work func(tx querier) error
	err  error
	done chan struct{}
}

// maxGroup bounds how many writes share a transaction: none should wait long for
// those of others.
const maxGroup = 64

func (g *group) add(p *pending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, p)
}

func (g *group) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// take returns those whose turn it is, in the order in which they came.
func (g *group) take() []*pending {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), maxGroup)
	taken := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	return taken
}

// leave takes a write back; false when it is being done already.
func (g *group) leave(p *pending) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, p)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

// writeInTurn does a write together with all others that wait for the one place
// there is: the caller that gets the turn does the writes of all.
func (s *Store) writeInTurn(ctx context.Context, c care, what string, work func(tx querier) error) error {
	p := &pending{ctx: ctx, care: c, what: what, work: work, done: make(chan struct{})}
	s.group.add(p)
	for {
		select {
		case <-p.done:
			return p.err
		case <-s.turn:
			runtime.Gosched() // those who come at the same moment join in
			s.writeAll(s.group.take())
			s.turn <- struct{}{}
		case <-ctx.Done():
			if s.group.leave(p) {
				return fmt.Errorf("%s: %w", what, ctx.Err())
			}
			<-p.done // the caller that has the turn is at it, and sees that ctx has ended
			return p.err
		}
	}
}

// writeAll does writes in one transaction. When something is wrong with one of them
// nothing of that counts, and each has a transaction of its own.
func (s *Store) writeAll(all []*pending) {
	if len(all) > 1 && s.writeTogether(all) == nil {
		s.health.note(nil)
	} else {
		for _, p := range all {
			p.err = s.retry(p.ctx, p.what, func() error { return s.transact(p.ctx, p.care, p.work) })
		}
	}
	for _, p := range all {
		close(p.done)
	}
}

func (s *Store) writeTogether(all []*pending) error {
	most := careLittle
	for _, p := range all {
		most = max(most, p.care)
	}
	// No caller may end the transaction of the others.
	return s.transact(context.WithoutCancel(all[0].ctx), most, func(tx querier) error {
		for _, p := range all {
			if err := p.work(tx); err != nil {
				return err
			}
		}
		return nil
	})
}
