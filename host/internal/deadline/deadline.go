// Package deadline is the pausable deadline of a call: it stands still while a person is
// asked. [New] costs next to nothing until its context is needed.
package deadline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/ending"
	"github.com/usher-mcp/usher/mcp"
)

// TimeoutError is the cause of a context that one of our own deadlines ended, as
// opposed to the caller's.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("no answer within %s", e.After) }

// Is makes it a deadline like any other.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Pausable is the deadline of one call. It pauses while a person is being asked:
// their time is not the server's.
type Pausable struct {
	around *Pausable // of the whole operation that the call is part of; may be nil
	ctx    ending.Context

	mu     sync.Mutex // guards what follows
	timer  *time.Timer
	whole  time.Duration
	left   time.Duration
	since  time.Time // since when left runs out
	paused int
	ended  bool
}

// New is a deadline after d. It costs next to nothing until its context is
// asked for. End must be called.
func New(parent context.Context, d time.Duration, around *Pausable) *Pausable {
	return &Pausable{around: around, ctx: ending.Under(parent), whole: d, left: d, since: time.Now()}
}

// With returns a context that ends after d, with a *TimeoutError as its
// cause. End must be called.
func With(ctx context.Context, d time.Duration, around *Pausable) (context.Context, *Pausable) {
	p := New(ctx, d, around)
	return p.Context(), p
}

// Context ends when the deadline has passed.
func (p *Pausable) Context() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		p.timer = time.AfterFunc(max(p.left-time.Since(p.since), 0), func() { p.ctx.End(&TimeoutError{p.whole}) })
	}
	return &p.ctx
}

// End stops the deadline and ends its context.
func (p *Pausable) End() {
	p.mu.Lock()
	p.ended = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.ctx.End(nil)
}

// Pause stops the clock of p, and of the deadline around it, until Resume.
func (p *Pausable) Pause() {
	if p == nil {
		return
	}
	p.around.Pause()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused++; p.paused == 1 && (p.timer == nil || p.timer.Stop()) {
		p.left -= time.Since(p.since)
	}
}

// Resume is the end of one Pause.
func (p *Pausable) Resume() {
	if p == nil {
		return
	}
	p.around.Resume()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused--; p.paused > 0 || p.ended {
		return
	}
	p.since = time.Now()
	if p.timer != nil {
		p.timer.Reset(max(p.left, 0))
	}
}

// Remaining is how long it will last if it does not rest.
func (p *Pausable) Remaining() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left - time.Since(p.since)
}

// WhileAnswering wraps a responder so that the deadline rests while it works.
func (p *Pausable) WhileAnswering(answer mcp.Responder) mcp.Responder {
	if answer == nil {
		return nil
	}
	return func(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error) {
		p.Pause()
		defer p.Resume()
		return answer(ctx, method, params)
	}
}
