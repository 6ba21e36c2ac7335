package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/upstream"
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
	cancel context.CancelCauseFunc

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	left    time.Duration
	since   time.Time // when the timer was last started
	resting int
	ended   bool
}

// withPatience returns a context that ends after d, with a *timeoutError as its
// cause. end must be called.
func withPatience(ctx context.Context, d time.Duration, around *patience) (context.Context, *patience) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &patience{around: around, cancel: cancel, left: d, since: time.Now()}
	p.timer = time.AfterFunc(d, func() { cancel(&timeoutError{d}) })
	return ctx, p
}

func (p *patience) end() {
	p.mu.Lock()
	p.ended = true
	p.timer.Stop()
	p.mu.Unlock()
	p.cancel(context.Canceled)
}

func (p *patience) rest() {
	if p == nil {
		return
	}
	p.around.rest()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting++; p.resting == 1 && p.timer.Stop() {
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
	if p.resting--; p.resting == 0 && !p.ended {
		p.since = time.Now()
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
func (p *patience) whileAnswering(answer upstream.Responder) upstream.Responder {
	if answer == nil {
		return nil
	}
	return func(ctx context.Context, method string, params []byte) ([]byte, *wire.Error) {
		p.rest()
		defer p.resume()
		return answer(ctx, method, params)
	}
}
