package upstream

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// An ending does what [context.WithCancel] does, whether somebody has asked for the
// real context before it ended, after, or never.
func TestEnding(t *testing.T) {
	why := errors.New("why")
	tests := []struct {
		name        string
		end         func(e *ending, caller context.CancelCauseFunc)
		err, cause  error
		calls, kept bool // f was called; stop says that it was not
	}{
		{"nothing happens", func(*ending, context.CancelCauseFunc) {}, nil, nil, false, true},
		{"the exchange is over", func(e *ending, _ context.CancelCauseFunc) { e.end() }, context.Canceled, context.Canceled, true, false},
		{"the caller leaves", func(_ *ending, leave context.CancelCauseFunc) { leave(why) }, context.Canceled, why, true, false},
		{"both", func(e *ending, leave context.CancelCauseFunc) { leave(why); e.end() }, context.Canceled, why, true, false},
	}
	for _, tt := range tests {
		for _, waitedFor := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					caller, leave := context.WithCancelCause(t.Context())
					defer leave(nil)
					e := &ending{caller: caller}
					if waitedFor {
						_ = e.Done()
					}
					var called atomic.Bool
					stop := onEnd(e, func() { called.Store(true) })
					child, stopChild := context.WithCancel(context.WithValue(e, key{}, "v"))
					defer stopChild()
					tt.end(e, leave)
					synctest.Wait()
					if called.Load() != tt.calls {
						t.Errorf("f was called: %v", called.Load())
					}
					if kept := stop(); kept != tt.kept {
						t.Errorf("stop says %v", kept)
					}
					for what, ctx := range map[string]context.Context{"it": e, "its child": child} {
						if err, cause := ctx.Err(), context.Cause(ctx); !errors.Is(err, tt.err) || !errors.Is(cause, tt.cause) || (err == nil) != (tt.err == nil) {
							t.Errorf("%s ended with %v because of %v", what, err, cause)
						}
						select {
						case <-ctx.Done():
							if tt.err == nil {
								t.Errorf("%s is done", what)
							}
						default:
							if tt.err != nil {
								t.Errorf("%s is not done", what)
							}
						}
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

// What was taken back is not called by a later end.
func TestEndingStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, leave := context.WithCancel(t.Context())
		e := &ending{caller: caller}
		stop := onEnd(e, func() { t.Error("called") })
		if !stop() {
			t.Error("it was called already?")
		}
		leave()
		e.end()
		synctest.Wait()
	})
}
