package upstream

import (
	"context"
	"sync"
	"time"
)

// ending is the context of a POST: it ends with its caller's, or when the exchange is
// over. It is [context.WithCancel] for the case that nobody but the direct way waits
// for it, which is nearly every call: then none of what that makes is made.
type ending struct {
	caller context.Context

	mu     sync.Mutex      // guards what follows
	ctx    context.Context // the real one, nil until somebody needs it
	cancel context.CancelFunc
	over   bool
	then   func() // what the direct way wants to happen
}

// end ends it.
func (e *ending) end() {
	e.mu.Lock()
	e.over = true
	cancel, then := e.cancel, e.then
	e.then = nil
	e.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if then != nil {
		then()
	}
}

// onEnd calls f when it ends, perhaps twice. stop takes that back and reports whether
// f has not been called.
func (e *ending) onEnd(f func()) (stop func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx != nil || e.over {
		return context.AfterFunc(e.real(), f)
	}
	e.then = f
	leave := afterFunc(e.caller, f)
	return func() bool {
		e.mu.Lock()
		e.then = nil
		over := e.over
		e.mu.Unlock()
		return leave() && !over
	}
}

// afterFunc is [context.AfterFunc] without its preparations where ctx can do it itself.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
		return c.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// real makes the context that others can wait for; it needs mu.
func (e *ending) real() context.Context {
	if e.ctx == nil {
		e.ctx, e.cancel = context.WithCancel(e.caller)
		if e.over {
			e.cancel()
		}
	}
	return e.ctx
}

// Done implements [context.Context].
func (e *ending) Done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.real().Done()
}

// Err implements [context.Context].
func (e *ending) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ctx != nil:
		return e.ctx.Err()
	case e.over:
		return context.Canceled
	}
	return e.caller.Err()
}

// Value implements [context.Context].
func (e *ending) Value(key any) any {
	e.mu.Lock()
	ctx := e.ctx
	e.mu.Unlock()
	if ctx == nil {
		ctx = e.caller
	}
	return ctx.Value(key)
}

// Deadline implements [context.Context].
func (e *ending) Deadline() (time.Time, bool) { return e.caller.Deadline() }
