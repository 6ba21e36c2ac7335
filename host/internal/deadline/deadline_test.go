package deadline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPause: neither the deadline nor the one around it runs while it is paused.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, around := With(t.Context(), 3*time.Second, nil)
		defer around.End()
		ctx, p := With(all, 2*time.Second, around)
		defer p.End()
		time.Sleep(time.Second)
		p.Pause()
		time.Sleep(time.Hour)
		if ctx.Err() != nil || all.Err() != nil {
			t.Fatal("a paused deadline passed")
		}
		p.Resume()
		if left := p.Remaining(); left != time.Second {
			t.Errorf("%v are left, want 1s", left)
		}
		<-ctx.Done()
		var late *TimeoutError
		if err := context.Cause(ctx); !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) || all.Err() != nil {
			t.Errorf("%v; around: %v", err, all.Err())
		}
	})
}
