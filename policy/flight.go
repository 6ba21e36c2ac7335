package policy

import (
	"context"
	"sync"

	"github.com/usher-mcp/usher/mcp"
)

// flights lets identical calls that are in flight at once share one request. It
// differs from singleflight in that the request ends when the last of those who
// wait for it has left, and only then.
type flights struct {
	mu      sync.Mutex // guards flights, their waiters, closed
	flights map[cacheKey]*flight
	closed  bool
	wg      sync.WaitGroup
}

type flight struct {
	waiters int
	cancel  context.CancelFunc
	done    chan struct{} // closed when the answer is there
	answer  answer
}

// answer is what a server said, and for how long it said that it may be kept.
type answer struct {
	raw   []byte
	fresh mcp.Freshness
	err   error
}

// do runs fn, or waits for the one that runs already and says so. fn's context
// has the first caller's values, and ends when nobody waits any more.
func (s *flights) do(ctx context.Context, k cacheKey, fn func(context.Context) answer) (a answer, joined bool) {
	s.mu.Lock()
	f, joined := s.flights[k]
	if !joined {
		if s.closed {
			s.mu.Unlock()
			return fn(ctx), false
		}
		f = s.start(ctx, k, fn)
	}
	f.waiters++
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.answer, joined
	case <-ctx.Done():
	}
	s.mu.Lock()
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		s.forget(k, f) // who comes now wants an answer
	}
	s.mu.Unlock()
	return answer{err: context.Cause(ctx)}, joined
}

// start needs mu.
func (s *flights) start(ctx context.Context, k cacheKey, fn func(context.Context) answer) *flight {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{cancel: cancel, done: make(chan struct{})}
	if s.flights == nil {
		s.flights = map[cacheKey]*flight{}
	}
	s.flights[k] = f
	s.wg.Go(func() {
		defer cancel()
		f.answer = fn(run)
		s.mu.Lock()
		s.forget(k, f)
		s.mu.Unlock()
		close(f.done)
	})
	return f
}

// forget needs mu.
func (s *flights) forget(k cacheKey, f *flight) {
	if s.flights[k] == f {
		delete(s.flights, k)
	}
}

// close ends what is in flight and waits for it.
func (s *flights) close() {
	s.mu.Lock()
	s.closed = true
	for _, f := range s.flights {
		f.cancel()
	}
	s.mu.Unlock()
	s.wg.Wait()
}
