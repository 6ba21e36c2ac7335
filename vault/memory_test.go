package vault_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/vaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openMemory(t *testing.T) vault.Store {
	s := vault.NewMemory()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestMemoryContract(t *testing.T) { vaulttest.Run(t, openMemory) }

// The one process that uses it has seen a lease since it gave it out.
func TestMemoryClocks(t *testing.T) {
	vaulttest.RunClocks(t, func(_ *testing.T, clocks ...vault.Clock) []vault.Store {
		s := vault.NewMemoryAt(clocks[0])
		return []vault.Store{s, s}
	})
}

// A lease is free exactly when its time is over, not a moment before.
func TestMemoryLeaseTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vault.NewMemory()
		l, err := s.Lease(t.Context(), "l", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		_, err = s.Lease(t.Context(), "l", time.Minute)
		held, ok := errors.AsType[*vault.HeldError](err)
		if !ok || held.Remaining != time.Nanosecond {
			t.Fatalf("just before the end: %v", err)
		}
		if l, err = s.Renew(t.Context(), l, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := s.Lease(t.Context(), "l", time.Minute); err != nil {
			t.Fatalf("at the end: %v", err)
		}
		if _, err := s.PutFenced(t.Context(), vault.LocalKey("k", "n"), nil, 0, l); !errors.Is(err, vault.ErrFenced) {
			t.Fatalf("PutFenced of the old holder: %v", err)
		}
	})
}

func TestAcquireWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vault.NewMemory()
		if _, err := s.Lease(t.Context(), "l", time.Minute); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := vault.Acquire(t.Context(), s, "l", time.Minute); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < time.Minute || took > time.Minute+500*time.Millisecond {
			t.Errorf("acquired after %v, want soon after a minute", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := vault.Acquire(ctx, s, "l", time.Minute)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, vault.ErrHeld) {
			t.Errorf("Acquire = %v, want the deadline and who holds it", err)
		}
	})
}

func TestHoldRenewsAndReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vault.NewMemory()
		failed := errors.New("work failed")
		err := vault.Hold(t.Context(), s, "l", time.Minute, func(ctx context.Context, l vault.Lease) error {
			time.Sleep(time.Hour)
			if _, err := s.Lease(ctx, "l", time.Minute); !errors.Is(err, vault.ErrHeld) {
				t.Errorf("after an hour of work: %v, want it still held", err)
			}
			if ctx.Err() != nil {
				t.Errorf("work was told to stop: %v", context.Cause(ctx))
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("Hold = %v, want the work's error", err)
		}
		if _, err := s.Lease(t.Context(), "l", time.Minute); err != nil {
			t.Errorf("after Hold: %v, want it free at once", err)
		}
	})
}

// Whoever gave up waiting still has to let go of the lease.
func TestHoldReleasesAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := vault.NewMemory()
		ctx, cancel := context.WithCancel(t.Context())
		err := vault.Hold(ctx, s, "l", time.Hour, func(ctx context.Context, _ vault.Lease) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Hold = %v", err)
		}
		if _, err := s.Lease(t.Context(), "l", time.Minute); err != nil {
			t.Errorf("after Hold: %v", err)
		}
	})
}

// stolen is a store in which the lease is always found lost, or unreachable.
type stolen struct {
	vault.Store
	err error
}

func (s stolen) Renew(context.Context, vault.Lease, time.Duration) (vault.Lease, error) {
	return vault.Lease{}, s.err
}

func TestHoldTellsOfLoss(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want time.Duration // when work hears of it
	}{
		{"taken", vault.ErrFenced, time.Minute},
		{"store unreachable", vault.ErrUnavailable, 3 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stolen{vault.NewMemory(), tt.err}
				start := time.Now()
				err := vault.Hold(t.Context(), s, "l", 3*time.Minute, func(ctx context.Context, _ vault.Lease) error {
					<-ctx.Done()
					return context.Cause(ctx)
				})
				if !errors.Is(err, vault.ErrFenced) || time.Since(start) != tt.want {
					t.Errorf("work ended with %v after %v, want ErrFenced after %v", err, time.Since(start), tt.want)
				}
			})
		})
	}
}
