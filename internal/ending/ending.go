// Package ending has a context that is cheap as long as nobody calls Done.
//
// A call over HTTP has such a context; the connection learns of its end with AfterFunc,
// and the channel is made only when somebody calls Done. It has no deadline of its own:
// a caller with a deadline calls End.
package ending

import (
	"context"
	"sync"
	"time"
)

// Context is what [context.WithCancelCause] returns, made only when somebody waits for
// it: with its parent's children and channels that is most of what a short call makes.
// It must not be copied once it is in use.
type Context struct {
	parent context.Context

	mu     sync.Mutex      // guards what follows
	ctx    context.Context // the real one, nil until somebody needs it
	cancel context.CancelCauseFunc
	over   bool   // by End
	cause  error  // of that
	then   func() // what is to be called at its end
}

// Under returns a context that ends with its parent, or by End.
func Under(parent context.Context) Context { return Context{parent: parent} }

// End ends it; the first time counts. A nil cause is [context.Canceled].
func (c *Context) End(cause error) {
	c.mu.Lock()
	if !c.over {
		c.over, c.cause = true, cause
	}
	if cause != nil {
		c.real() // which knows the cause
	}
	cancel, then := c.cancel, c.then
	c.then = nil
	c.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
	if then != nil {
		then()
	}
}

// AfterFunc calls f when c ends, perhaps twice. stop takes that back and reports
// whether f has not been called.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil || c.over || c.then != nil {
		return context.AfterFunc(c.real(), f)
	}
	c.then = f
	leave := AfterFunc(c.parent, f)
	return func() bool {
		c.mu.Lock()
		waits := c.then != nil
		c.then = nil
		c.mu.Unlock()
		return leave() && waits
	}
}

// AfterFunc is [context.AfterFunc], without what that prepares where ctx can do it
// itself. f may be called twice.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) {
	if c, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
		return c.AfterFunc(f)
	}
	if ctx.Done() == nil {
		return func() bool { return true } // it never ends
	}
	return context.AfterFunc(ctx, f)
}

// real makes the context that others can wait for; it needs mu.
func (c *Context) real() context.Context {
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancelCause(c.parent)
		if c.over {
			c.cancel(c.cause)
		}
	}
	return c.ctx
}

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real().Done()
}

// Err implements [context.Context].
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx != nil:
		return c.ctx.Err()
	case c.over:
		return context.Canceled
	}
	return c.parent.Err()
}

// Value implements [context.Context].
func (c *Context) Value(key any) any {
	c.mu.Lock()
	ctx := c.ctx
	c.mu.Unlock()
	if ctx == nil {
		ctx = c.parent
	}
	return ctx.Value(key)
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (time.Time, bool) { return c.parent.Deadline() }
