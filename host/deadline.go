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
//
// It is a context, too, that ends with its parent or after the deadline, with a
// *timeoutError as its cause. The real one behind it is made when somebody waits for
// it; a call over HTTP only wants to be told of its end, see AfterFunc.
type patience struct {
	around *patience // of the whole operation that the call is part of; may be nil
	parent context.Context

	mu      sync.Mutex      // guards what follows
	ctx     context.Context // the real one, nil until somebody needs it
	cancel  context.CancelCauseFunc
	then    func()      // to be called when it ends; nil for nothing
	timer   *time.Timer // nil until it is used as a context
	whole   time.Duration
	left    time.Duration
	since   time.Time // since when left runs out
	resting int
	ended   bool
}

// newPatience is a deadline after d. It costs next to nothing until its context is
// asked for. end must be called.
func newPatience(parent context.Context, d time.Duration, around *patience) *patience {
	return &patience{around: around, parent: parent, whole: d, left: d, since: time.Now()}
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
		p.timer = time.AfterFunc(max(p.left-time.Since(p.since), 0), p.expire)
	}
	return p
}

// expire is the end of the deadline.
func (p *patience) expire() {
	p.mu.Lock()
	p.real() // which knows the cause
	p.mu.Unlock()
	p.cancel(&timeoutError{p.whole})
	p.tell()
}

func (p *patience) end() {
	p.mu.Lock()
	p.ended = true
	timer, cancel := p.timer, p.cancel
	p.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	if cancel != nil {
		cancel(context.Canceled)
	}
	p.tell()
}

// tell calls what was to be called at the end.
func (p *patience) tell() {
	p.mu.Lock()
	then := p.then
	p.then = nil
	p.mu.Unlock()
	if then != nil {
		then()
	}
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
