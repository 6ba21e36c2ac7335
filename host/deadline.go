package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/ending"
	"github.com/usher-mcp/usher/mcp"
)

// timeoutError is the cause of a context that one of our own deadlines ended, as
// opposed to the caller's.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// Is makes it a deadline like any other.
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// patience is the deadline of one call. It rests while a person is being asked:
// their time is not the server's.
type patience struct {
	around *patience // of the whole operation that the call is part of; may be nil
	ctx    ending.Context

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	whole   time.Duration
	left    time.Duration
	since   time.Time // since when left runs out
	resting int
	ended   bool
}

// newPatience is a deadline after d. It costs next to nothing until its context is
// asked for. end must be called.
func newPatience(parent context.Context, d time.Duration, around *patience) *patience {
	return &patience{around: around, ctx: ending.Under(parent), whole: d, left: d, since: time.Now()}
}

// withPatience returns a context that ends after d, with a *timeoutError as its
// cause. end must be called.
func withPatience(ctx context.Context, d time.Duration, around *patience) (context.Context, *patience) {
	p := newPatience(ctx, d, around)
	return p.context(), p
}

// context ends when the patience does.
func (p *patience) context() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		p.timer = time.AfterFunc(max(p.left-time.Since(p.since), 0), func() { p.ctx.End(&timeoutError{p.whole}) })
	}
	return &p.ctx
}

func (p *patience) end() {
	p.mu.Lock()
	p.ended = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.ctx.End(nil)
}

func (p *patience) rest() {
	if p == nil {
		return
	}
	p.around.rest()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting++; p.resting == 1 && (p.timer == nil || p.timer.Stop()) {
		p.left -= time.Since(p.since)
	}
}

func (p *patience) resume() {
	if p == nil {
		return
	}
	p.around.resume()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting--; p.resting > 0 || p.ended {
		return
	}
	p.since = time.Now()
	if p.timer != nil {
		p.timer.Reset(max(p.left, 0))
	}
}

// remaining is how long it will last if it does not rest.
func (p *patience) remaining() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left - time.Since(p.since)
}

// whileAnswering wraps a responder so that the deadline rests while it works.
func (p *patience) whileAnswering(answer mcp.Responder) mcp.Responder {
	if answer == nil {
		return nil
	}
	return func(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error) {
		p.rest()
		defer p.resume()
		return answer(ctx, method, params)
	}
}
