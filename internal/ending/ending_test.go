package ending

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// It does what [context.WithCancelCause] does, whether somebody has asked for the real
// one before it ended, after, or never.
func TestContext(t *testing.T) {
	why, late := errors.New("why"), errors.New("late")
	tests := []struct {
		name        string
		end         func(c *Context, parent context.CancelCauseFunc)
		err, cause  error
		calls, kept bool // f was called; stop says that it was not
	}{
		{"nothing happens", func(*Context, context.CancelCauseFunc) {}, nil, nil, false, true},
		{"it is over", func(c *Context, _ context.CancelCauseFunc) { c.End(nil) }, context.Canceled, context.Canceled, true, false},
		{"it is over twice", func(c *Context, _ context.CancelCauseFunc) { c.End(nil); c.End(late) }, context.Canceled, context.Canceled, true, false},
		{"it is over with a cause", func(c *Context, _ context.CancelCauseFunc) { c.End(why); c.End(nil) }, context.Canceled, why, true, false},
		{"the parent ends", func(_ *Context, leave context.CancelCauseFunc) { leave(why) }, context.Canceled, why, true, false},
		{"the parent, then it", func(c *Context, leave context.CancelCauseFunc) { leave(why); c.End(late) }, context.Canceled, why, true, false},
	}
	for _, tt := range tests {
		for _, waitedFor := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, leave := context.WithCancelCause(t.Context())
					defer leave(nil)
					c := Under(parent)
					if waitedFor {
						_ = c.Done()
					}
					var called atomic.Int32
					first := AfterFunc(&c, func() { called.Or(1) })
					second := AfterFunc(&c, func() { called.Or(2) })
					AfterFunc(&c, func() { t.Error("called though it was taken back") })()
					child, stop := context.WithCancel(context.WithValue(&c, key{}, "v"))
					defer stop()
					if tt.end(&c, leave); tt.err != nil && child.Err() == nil {
						t.Error("its child has not ended")
					}
					synctest.Wait()
					if got := called.Load(); (got == 3) != tt.calls || got != 0 && got != 3 {
						t.Errorf("called: %b", got)
					}
					if a, b := first(), second(); a != tt.kept || b != tt.kept {
						t.Errorf("stop says %v and %v", a, b)
					}
					for what, ctx := range map[string]context.Context{"it": &c, "its child": child} {
						wantEnded(t, what, ctx, tt.err, tt.cause)
					}
					if child.Value(key{}) != "v" {
						t.Error("values are lost")
					}
				})
			})
		}
	}
}

type key struct{}

func wantEnded(t *testing.T, what string, ctx context.Context, wantErr, wantCause error) {
	t.Helper()
	if err, cause := ctx.Err(), context.Cause(ctx); !errors.Is(err, wantErr) || !errors.Is(cause, wantCause) {
		t.Errorf("%s ended with %v because of %v, want %v, %v", what, err, cause, wantErr, wantCause)
	}
	select {
	case <-ctx.Done():
		if wantErr == nil {
			t.Errorf("%s is done", what)
		}
	default:
		if wantErr != nil {
			t.Errorf("%s is not done", what)
		}
	}
}

// The connection asks to be told, nobody waits: nothing else is made.
func TestContextMakesNothing(t *testing.T) {
	parent, leave := context.WithCancel(t.Context())
	defer leave()
	c := Under(parent)
	stop := AfterFunc(&c, func() { t.Error("called") })
	if c.ctx != nil {
		t.Error("the real context was made")
	}
	if !stop() {
		t.Error("it was called?")
	}
	c.End(nil)
	if c.ctx != nil || c.Err() == nil {
		t.Errorf("after its end: %v, %v", c.ctx, c.Err())
	}
}
