package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/upstream"
)

// explain turns the last outcome of an operation into what the caller is told.
func (u *unit) explain(op operation, o outcome, t tries) error {
	if o.err == nil {
		return nil
	}
	err := o.err
	switch {
	case t.final != nil:
		err = t.final
	case o.barred && t.first != nil:
		err = t.first // what went wrong says more than why it was not tried again
	}
	if errors.Is(err, errReplaced) {
		return err
	}
	var dial *dialError
	if errors.As(err, &dial) {
		err = dial.err
	}
	var done *Error
	if errors.As(err, &done) {
		return done
	}
	e := &Error{Op: op.name, Server: u.key.Server, Err: err, unreached: o.live == nil || o.kind == broken}
	e.Advice, e.Action = u.next(o, err)
	var rl *upstream.RateLimitedError
	if errors.As(err, &rl) {
		e.RetryAfter = rl.RetryAfter
	}
	// A caller whose own deadline has passed still reads the error.
	late := o.kind == cancelled && errors.Is(err, context.DeadlineExceeded)
	if t.sent && (late || o.kind.leavesDoubt()) && !op.repeatable() {
		u.h.count.unknown.Add(1)
		e.Err = fmt.Errorf("%w: the request was sent, but no valid response arrived: %w", ErrOutcomeUnknown, err)
		e.Advice, e.Action = "it may have been carried out; check before you repeat it", ""
	}
	return e
}

// next is the next step after a failure.
func (u *unit) next(o outcome, err error) (advice string, action Action) {
	var need *NeedsLoginError
	switch {
	case errors.As(err, &need):
		return "", ActionLogin
	case errors.Is(err, ErrBusy):
		return "try again, or raise maxConnected", ""
	case errors.Is(err, context.Canceled) && o.kind == cancelled:
		return "", ""
	case o.kind == timedOut:
		return "raise timeouts.call for this server if it needs longer", ""
	case o.kind == broken, o.kind == sick, o.kind == odd:
		return "", u.look()
	}
	return "", ""
}

// look is how to learn more about a failure: from what the child said, where there is
// one that said something.
func (u *unit) look() Action {
	if ring := u.base.Stderr; ring != nil && len(ring.Lines()) > 0 {
		return ActionLogs
	}
	return ActionDiagnose
}

// nextTry says when a request is tried again.
func nextTry(wait time.Duration) string {
	return fmt.Sprintf("next try in %s", max(wait.Round(time.Second), time.Second))
}

func (u *unit) ejected() error {
	u.mu.Lock()
	last := u.lastErr
	u.mu.Unlock()
	err := fmt.Errorf("%w: more than %d restarts within %s", ErrEjected, u.srv.Supervision.RestartLimit(), u.srv.Supervision.RestartWindow)
	e := &Error{Op: "reach", Server: u.key.Server, Err: withLast(err, last), Action: ActionReload, RetryAfter: u.budget.Left(), unreached: true}
	if e.RetryAfter > 0 {
		e.Advice = nextTry(e.RetryAfter)
	}
	return e
}

func (u *unit) circuitOpen(wait time.Duration) error {
	u.mu.Lock()
	last := u.lastErr
	u.mu.Unlock()
	_, failures := u.breaker.Look()
	err := fmt.Errorf("%w after %d failures in a row", ErrCircuitOpen, failures)
	if failures == 1 {
		err = fmt.Errorf("%w after a failure", ErrCircuitOpen)
	}
	e := &Error{Op: "reach", Server: u.key.Server, Err: withLast(err, last), RetryAfter: wait, unreached: true}
	e.Advice = "a probe is in progress; try again in a moment"
	if wait > 0 {
		e.Advice, e.Action = nextTry(wait), ActionReload
	}
	return e
}

// withLast adds what went wrong last.
func withLast(err, last error) error {
	if last == nil {
		return err
	}
	return fmt.Errorf("%w; the last: %v", err, last)
}
