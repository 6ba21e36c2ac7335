package budget

import (
	"context"
	"sync/atomic"
)

// Session counts the calls of one session of a client. The zero value is ready to
// use; how many calls there may be is usher.budgets.session at the time of a call.
type Session struct{ used atomic.Int64 }

// Used is how many calls were charged to the session.
func (s *Session) Used() int64 { return s.used.Load() }

// dispatch is the budget of a context.
type dispatch struct {
	limit int64
	used  atomic.Int64
	outer *dispatch // of the context that it was made from
}

// dispatchKey finds the budget of a context.
type dispatchKey struct{}

// With returns a context with which at most n tools can be called, by whatever
// uses the context or one made from it: a budget for one task of the program. Every
// further call fails with [ErrSpent]. A budget inside another one counts for both.
func With(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, dispatchKey{}, &dispatch{limit: max(n, 0), outer: dispatchOf(ctx)})
}

// Left returns how many more calls a context allows; false when it has no
// budget.
func Left(ctx context.Context) (int64, bool) {
	d := dispatchOf(ctx)
	if d == nil {
		return 0, false
	}
	left := d.left()
	for d = d.outer; d != nil; d = d.outer {
		left = min(left, d.left())
	}
	return left, true
}

func (d *dispatch) left() int64 { return max(d.limit-d.used.Load(), 0) }

func dispatchOf(ctx context.Context) *dispatch {
	d, _ := ctx.Value(dispatchKey{}).(*dispatch)
	return d
}

// take uses one call of a budget and of all that it is inside of, or of none.
func (d *dispatch) take() error {
	for at := d; at != nil; at = at.outer {
		if n := at.used.Add(1); n > at.limit {
			at.used.Add(-1)
			d.refund(at)
			return &Error{Scope: ScopeDispatch, Limit: at.limit}
		}
	}
	return nil
}

// refund gives back one call of each budget from d out to end.
func (d *dispatch) refund(end *dispatch) {
	for at := d; at != end; at = at.outer {
		at.used.Add(-1)
	}
}

// take uses one call of a session; a limit of 0 is none.
func (s *Session) take(limit int64) error {
	if s == nil {
		return nil
	}
	if n := s.used.Add(1); limit > 0 && n > limit {
		s.used.Add(-1)
		return &Error{Scope: ScopeSession, Limit: limit}
	}
	return nil
}

func (s *Session) refund() {
	if s != nil {
		s.used.Add(-1)
	}
}

// Charge takes one call from all budgets that apply, or from none of them: of the
// context, of the session, of all servers together and of the server.
func (b *Budgets) Charge(ctx context.Context, s *Session, m *Meter) error {
	d := dispatchOf(ctx)
	if err := d.take(); err != nil {
		return err
	}
	err := s.take(b.session.Load())
	if err == nil {
		if err = b.charge(ctx, m); err == nil {
			return nil
		}
		s.refund()
	}
	d.refund(nil)
	return err
}
