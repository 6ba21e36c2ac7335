package host

import (
	"context"
	"time"
)

// real makes the context that others can wait for; it needs mu.
func (p *patience) real() context.Context {
	if p.ctx == nil {
		p.ctx, p.cancel = context.WithCancelCause(p.parent)
		if p.ended {
			p.cancel(context.Canceled)
		}
	}
	return p.ctx
}

// AfterFunc calls f when p ends, perhaps twice. stop takes that back and reports
// whether f has not been called. [context.AfterFunc] uses it, and whoever knows of it
// saves most of what that makes.
func (p *patience) AfterFunc(f func()) (stop func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx != nil || p.ended || p.then != nil {
		return context.AfterFunc(p.real(), f)
	}
	p.then = f
	leave := context.AfterFunc(p.parent, f)
	return func() bool {
		p.mu.Lock()
		waits := p.then != nil
		p.then = nil
		p.mu.Unlock()
		return leave() && waits
	}
}

// Done implements [context.Context].
func (p *patience) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.real().Done()
}

// Err implements [context.Context].
func (p *patience) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ctx != nil:
		return p.ctx.Err()
	case p.ended:
		return context.Canceled
	}
	return p.parent.Err()
}

// Value implements [context.Context].
func (p *patience) Value(key any) any {
	p.mu.Lock()
	ctx := p.ctx
	p.mu.Unlock()
	if ctx == nil {
		ctx = p.parent
	}
	return ctx.Value(key)
}

// Deadline implements [context.Context]. It says nothing of p's own, which may rest.
func (p *patience) Deadline() (time.Time, bool) { return p.parent.Deadline() }
