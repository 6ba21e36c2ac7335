package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host/internal/deadline"
	"github.com/usher-mcp/usher/host/internal/supervise"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/upstream"
)

// operation is something to do on a connection under supervision.
type operation struct {
	name       string // for messages: "call", "list"
	timeout    time.Duration
	repeatable func() bool // whether it may run twice; asked only when it matters
	do         func(ctx context.Context, p *deadline.Pausable, l *live) error
}

// outcome is how one attempt ended.
type outcome struct {
	kind   kind
	err    error
	sent   bool  // the server may have got the request
	barred bool  // breaker or budget did not let it try
	live   *live // nil when there was no connection
}

// tries is what has been done for one operation so far.
type tries struct {
	restarted, waited bool
	failed            bool // the breaker has counted a failure of it
	refusals          int
	sent              bool
	first             error // of the attempt that was repeated
	final             error // what to say instead of the last error
}

// run does op, once more where that is safe or nothing was done yet.
func (u *unit) run(ctx context.Context, op operation) error {
	// A request waits for a connection and for its answer, never longer.
	p := deadline.New(ctx, u.srv.Timeouts.Connect+op.timeout, nil)
	defer p.End()
	var t tries
	for {
		o := u.attempt(ctx, p, op, &t)
		t.sent = t.sent || o.sent
		if o.err == nil {
			return nil
		}
		if !u.again(p.Context(), p, op, o, &t) {
			return u.explain(op, o, t)
		}
		if t.first == nil {
			t.first = o.err
		}
		u.h.count.retries.Add(1)
	}
}

// attempt is one try: permission, connection, request, and what it teaches.
func (u *unit) attempt(caller context.Context, around *deadline.Pausable, op operation, so *tries) outcome {
	t, err := u.admit()
	if err != nil {
		return outcome{kind: local, err: err, barred: true}
	}
	l, parent, err := u.connection(caller, around)
	if err != nil {
		return u.noConnection(caller, t, err, so)
	}
	defer u.release(l)
	call, p := deadline.With(parent, op.timeout, around)
	defer p.End()
	l.calls.Add(1)
	defer l.calls.Add(-1)
	err = op.do(call, p, l)
	o := outcome{kind: callKind(caller, call, err), err: err, live: l}
	o.sent = o.kind != answered && maybeSent(err)
	if cause := context.Cause(caller); o.kind == cancelled && !errors.Is(err, cause) {
		o.err = fmt.Errorf("%w: %w", cause, err)
	}
	u.record(t, l, o, so)
	return o
}

// connection returns the connection for one more user, and the context in which it is
// used.
func (u *unit) connection(caller context.Context, around *deadline.Pausable) (l *live, parent context.Context, err error) {
	if u.ahead.Load() != nil {
		parent = around.Context()
		if l, err = u.arrive(parent); l != nil || err != nil {
			return l, parent, err
		}
	}
	// A connection that is there leaves nothing to wait for but the answer, which
	// has the shorter deadline.
	if l = u.ready(); l != nil {
		return l, caller, nil
	}
	parent = around.Context()
	l, err = u.acquire(parent)
	return l, parent, err
}

// count is the verdict of an attempt for the breaker: an operation that tries twice
// fails once. The result of a probe always counts.
func (t *tries) count(v supervise.Verdict, tk supervise.Ticket) supervise.Verdict {
	if v != supervise.Failure {
		return v
	}
	if t.failed && !tk.Probe {
		return supervise.Neither
	}
	t.failed = true
	return supervise.Failure
}

// noConnection settles a ticket that was not used.
func (u *unit) noConnection(caller context.Context, t supervise.Ticket, err error, so *tries) outcome {
	o := outcome{kind: local, err: err}
	var dial *dialError
	switch {
	case errors.As(err, &dial):
		o.kind = dial.kind
		u.settle(t, so.count(dial.kind.verdict(), t), &dial.fault)
		return o
	case caller.Err() != nil:
		o.kind = cancelled
	case errors.Is(err, ErrEjected), errors.Is(err, ErrCircuitOpen):
		o.barred = true
	}
	u.settle(t, supervise.Neither, nil)
	return o
}

// record takes in what the outcome of a request says about the server.
func (u *unit) record(t supervise.Ticket, l *live, o outcome, so *tries) {
	switch o.kind {
	case answered:
		u.settle(t, supervise.Success, nil)
		u.worked(l)
	case broken:
		u.fail(l, o.err)
		u.settle(t, so.count(supervise.Failure, t), &l.fault)
	case timedOut:
		u.h.count.timeouts.Add(1)
		if u.settle(t, so.count(supervise.Failure, t), nil) {
			// It has not answered for a long time: the next one to try gets a
			// fresh connection.
			u.fail(l, o.err)
		}
	default:
		u.settle(t, so.count(o.kind.verdict(), t), nil)
	}
	if o.kind == refused && errors.Is(o.err, ErrNeedsLogin) {
		u.lockedOut(l, o.err)
	}
}

// lockedOut shows that the server wants a login on a connection that works
// otherwise, or why the one there is cannot be used right now.
func (u *unit) lockedOut(l *live, err error) {
	u.mu.Lock()
	news := false
	switch {
	case u.live != l:
	case errors.Is(err, ErrNeedsLogin):
		news = u.state != NeedsAuth
		u.needLogin(err)
	default:
		u.lastErr = err
	}
	u.mu.Unlock()
	if news {
		u.log(slog.LevelWarn, "login required", "reason", reason(err))
	}
}

// fail takes a connection that failed a request out of use. What else is in flight
// on it may finish.
func (u *unit) fail(l *live, err error) {
	u.mu.Lock()
	current, ejected := u.live == l, false
	switch {
	case current:
		u.take()
		ejected = u.down(err, true)
		u.paid = true
	case u.live == nil:
		u.lastErr = err // it says more than that the connection ended
	}
	u.mu.Unlock()
	if current {
		u.logDown("the connection failed", err, ejected)
		l.drain(u.h.opt.Drain)
	}
}

// again decides whether to try once more, and waits where the server asked for it.
func (u *unit) again(ctx context.Context, p *deadline.Pausable, op operation, o outcome, t *tries) bool {
	if ctx.Err() != nil || o.barred {
		return false
	}
	switch o.kind {
	case broken, cut:
		if t.restarted || !u.mayRepeat(op, o) || o.live == nil && u.srv.Transport == config.TransportStdio {
			// A process that did not start is not started again for the same request.
			return false
		}
		t.restarted = true
		return true
	case limited:
		u.h.count.limited.Add(1)
		if t.waited {
			return false
		}
		t.waited = true
		return waits(ctx, p, rateWait(o.err))
	case refused:
		var refusal *upstream.UnauthorizedError
		if o.live == nil || !errors.As(o.err, &refusal) {
			return false // the dial has done all this
		}
		t.refusals++
		t.final = u.refused(ctx, *o.live.srv, refusal, t.refusals)
		if t.final != nil {
			u.lockedOut(o.live, t.final)
		}
		return t.final == nil
	}
	return false
}

// mayRepeat is the promise that nothing runs twice unless that is harmless.
func (u *unit) mayRepeat(op operation, o outcome) bool {
	switch {
	case u.srv.Supervision.Retry == config.RetryNever, hopeless(o.err):
		return false
	case !o.sent, u.srv.Supervision.Retry == config.RetryAlways:
		return true
	}
	return op.repeatable()
}

// Bounds of how long a server may ask us to wait.
const (
	defaultRateWait = time.Second
	maxRateWait     = time.Minute
)

// rateWait is how long to leave a server alone, with a little jitter so that not
// all come back at once.
func rateWait(err error) time.Duration {
	wait := defaultRateWait
	var rl *upstream.RateLimitedError
	if errors.As(err, &rl) && rl.RetryAfter > 0 {
		wait = min(rl.RetryAfter, maxRateWait)
	}
	return wait + rand.N(wait/10+1)
}

// waits waits for d, unless the deadline is known to pass before.
func waits(ctx context.Context, p *deadline.Pausable, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d || p.Remaining() < d {
		return false
	}
	return retry.Sleep(ctx, d) == nil
}
