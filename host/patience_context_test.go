package host

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A patience is a context like any other, whether somebody waits for it or only
// wants to be told.
func TestPatienceIsContext(t *testing.T) {
	why := errors.New("why")
	tests := []struct {
		name  string
		end   func(p *patience, caller context.CancelCauseFunc)
		cause error
	}{
		{"the deadline passes", func(*patience, context.CancelCauseFunc) {}, context.DeadlineExceeded},
		{"the caller leaves", func(_ *patience, leave context.CancelCauseFunc) { leave(why) }, why},
		{"it is over", func(p *patience, _ context.CancelCauseFunc) { p.end() }, context.Canceled},
	}
	for _, tt := range tests {
		for _, waitedFor := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					caller, leave := context.WithCancelCause(t.Context())
					defer leave(nil)
					ctx, p := withPatience(caller, time.Minute, nil)
					defer p.end()
					if waitedFor {
						_ = ctx.Done()
					}
					var first, second atomic.Int32
					p.AfterFunc(func() { first.Add(1) })
					p.AfterFunc(func() { second.Add(1) })
					p.AfterFunc(func() { t.Error("called though it was taken back") })()
					if ctx.Err() != nil || context.Cause(ctx) != nil {
						t.Fatalf("it ended at once: %v", ctx.Err())
					}
					tt.end(p, leave)
					time.Sleep(time.Minute)
					synctest.Wait()
					if first.Load() == 0 || second.Load() == 0 {
						t.Errorf("told %d and %d times", first.Load(), second.Load())
					}
					if err, cause := ctx.Err(), context.Cause(ctx); !errors.Is(err, context.Canceled) || !errors.Is(cause, tt.cause) {
						t.Errorf("it ended with %v because of %v", err, cause)
					}
					<-ctx.Done()
				})
			})
		}
	}
}
