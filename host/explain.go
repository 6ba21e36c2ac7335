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
	e := &Error{Op: op.name, Server: u.key.Server, Err: err, Hint: u.hint(o, err), unreached: o.live == nil || o.kind == broken}
	var rl *upstream.RateLimitedError
	if errors.As(err, &rl) {
		e.RetryAfter = rl.RetryAfter
	}
	// A caller whose own deadline has passed still reads the error.
	late := o.kind == cancelled && errors.Is(err, context.DeadlineExceeded)
	if t.sent && (late || o.kind.leavesDoubt()) && !op.repeatable() {
		u.h.count.unknown.Add(1)
		e.Err = fmt.Errorf("%w: the request was sent and no answer came that could be used: %w", ErrOutcomeUnknown, err)
		e.Hint = "it may have been carried out; check before you repeat it"
	}
	return e
}

// hint is the next step after a failure.
func (u *unit) hint(o outcome, err error) string {
	var need *NeedsLoginError
	switch {
	case errors.As(err, &need) && need.Command != "":
		return "run: " + need.Command
	case errors.Is(err, ErrBusy):
		return "try again, or raise maxConnected"
	case errors.Is(err, context.Canceled) && o.kind == cancelled:
		return ""
	case o.kind == timedOut:
		return "raise timeouts.call for this server if it needs longer"
	case o.kind == broken, o.kind == sick, o.kind == odd:
		return "see: " + u.look()
	}
	return ""
}

// look is the command that shows more about a failure: what the child said, where
// there is one that said something.
func (u *unit) look() string {
	if ring := u.base.Stderr; ring != nil && len(ring.Lines()) > 0 {
		return "usher logs " + u.key.Server
	}
	return "usher doctor " + u.key.Server
}

func (u *unit) ejected() error {
	u.mu.Lock()
	last := u.lastErr
	u.mu.Unlock()
	err := fmt.Errorf("%w: more than %d restarts within %s", ErrEjected, u.srv.Supervision.MaxRestarts, u.srv.Supervision.RestartWindow)
	hint := "run: usher reload " + u.key.Server
	left := u.budget.Left()
	if left > 0 {
		hint = fmt.Sprintf("next try in %s, or run: usher reload %s", max(left.Round(time.Second), time.Second), u.key.Server)
	}
	return &Error{Op: "reach", Server: u.key.Server, Err: withLast(err, last), Hint: hint, RetryAfter: left, unreached: true}
}

func (u *unit) circuitOpen(wait time.Duration) error {
	u.mu.Lock()
	last := u.lastErr
	u.mu.Unlock()
	_, failures := u.breaker.Look()
	err := fmt.Errorf("%w after %d failures in a row", ErrCircuitOpen, failures)
	hint := "a probe is under way; try again in a moment"
	if wait > 0 {
		hint = fmt.Sprintf("next try in %s, or run: usher reload %s", max(wait.Round(time.Second), time.Second), u.key.Server)
	}
	return &Error{Op: "reach", Server: u.key.Server, Err: withLast(err, last), Hint: hint, RetryAfter: wait, unreached: true}
}

// withLast adds what went wrong last.
func withLast(err, last error) error {
	if last == nil {
		return err
	}
	return fmt.Errorf("%w; the last: %v", err, last)
}
