package vaulttest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// long is a lease time that no test outlives, short one that every test does.
const (
	long  = time.Hour
	short = 30 * time.Millisecond
)

func mustLease(t testing.TB, s vault.Store, name string, ttl time.Duration) vault.Lease {
	t.Helper()
	l, err := s.Lease(t.Context(), name, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// leaseWhenFree asks until the present holder's time is over.
func leaseWhenFree(t testing.TB, s vault.Store, name string, ttl time.Duration) (l vault.Lease) {
	t.Helper()
	eventually(t, "the lease runs out", func() bool {
		var err error
		l, err = s.Lease(t.Context(), name, ttl)
		if err != nil && !errors.Is(err, vault.ErrHeld) {
			t.Fatal(err)
		}
		return err == nil
	})
	return l
}

func testLease(t *testing.T, s vault.Store) {
	ctx := t.Context()
	before := time.Now()
	first := mustLease(t, s, "l", long)
	if first.Name != "l" || first.Holder == "" || first.Epoch <= 0 {
		t.Errorf("lease %+v is not filled in", first)
	}
	if first.Expires.Before(before.Add(long-time.Second)) || first.Expires.After(time.Now().Add(long)) {
		t.Errorf("expires %v, want an hour from now", first.Expires)
	}
	_, err := s.Lease(ctx, "l", long)
	wantErr(t, "second Lease", err, vault.ErrHeld)
	held, ok := errors.AsType[*vault.HeldError](err)
	if !ok || held.Holder != first.Holder || held.Remaining <= 0 || held.Remaining > long+time.Second {
		t.Errorf("held: %+v, want the holder %s and its remaining time", held, first.Holder)
	}
	mustLease(t, s, "other", long)

	if err := s.Release(ctx, first); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "second Release", s.Release(ctx, first), vault.ErrFenced)
	second := mustLease(t, s, "l", long)
	if second.Epoch <= first.Epoch || second.Holder == first.Holder {
		t.Errorf("second lease %+v after %+v: the epoch must grow and the holder differ", second, first)
	}
	wantErr(t, "Release of the old lease", s.Release(ctx, first), vault.ErrFenced)
	_, err = s.Lease(ctx, "l", long)
	wantErr(t, "Lease after a stale Release", err, vault.ErrHeld)
}

func testLeaseExpiry(t *testing.T, s vault.Store) {
	first := mustLease(t, s, "l", short)
	second := leaseWhenFree(t, s, "l", long)
	if time.Now().Before(first.Expires) {
		t.Errorf("taken over before it ran out at %v", first.Expires)
	}
	if second.Epoch <= first.Epoch {
		t.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
	}
	_, err := s.Renew(t.Context(), first, long)
	wantErr(t, "Renew of a lease somebody took", err, vault.ErrFenced)
}

func testRenew(t *testing.T, s vault.Store) {
	ctx := t.Context()
	first := mustLease(t, s, "l", short)
	renewed, err := s.Renew(ctx, first, long)
	if err != nil {
		t.Fatal(err)
	}
	if renewed.Epoch != first.Epoch || renewed.Holder != first.Holder || !renewed.Expires.After(first.Expires) {
		t.Errorf("renewed %+v from %+v: only Expires may change", renewed, first)
	}
	eventually(t, "the first time is over", func() bool { return time.Now().After(first.Expires.Add(short)) })
	_, err = s.Lease(ctx, "l", long)
	wantErr(t, "Lease of a renewed one", err, vault.ErrHeld)

	// Run out, but nobody took it: still ours.
	idle := mustLease(t, s, "idle", short)
	eventually(t, "the time is over", func() bool { return time.Now().After(idle.Expires.Add(short)) })
	if _, err := s.Renew(ctx, idle, long); err != nil {
		t.Errorf("Renew of a lease that ran out and nobody took: %v", err)
	}
	if err := s.Release(ctx, first); err != nil {
		t.Errorf("Release with the value from before Renew: %v", err)
	}
	_, err = s.Renew(ctx, renewed, long)
	wantErr(t, "Renew after Release", err, vault.ErrFenced)
}

func testLeaseExclusion(t *testing.T, s vault.Store) {
	const workers, each = 4, 5
	var inside, entered atomic.Int32
	var epoch atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				err := vault.Hold(t.Context(), s, "l", time.Minute, func(_ context.Context, l vault.Lease) error {
					if inside.Add(1) != 1 {
						t.Error("two inside at once")
					}
					if old := epoch.Swap(l.Epoch); old >= l.Epoch {
						t.Errorf("epoch %d after %d", l.Epoch, old)
					}
					entered.Add(1)
					inside.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if entered.Load() != workers*each {
		t.Errorf("entered %d times, want %d", entered.Load(), workers*each)
	}
}

func testFencing(t *testing.T, s vault.Store) {
	ctx := t.Context()
	old := mustLease(t, s, "l", short)
	rec, err := s.PutFenced(ctx, key("a"), []byte("1"), 0, old)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.PutFenced(ctx, key("a"), []byte("x"), 0, old)
	wantErr(t, "PutFenced with a wrong version", err, vault.ErrConflict)

	eventually(t, "the time is over", func() bool { return time.Now().After(old.Expires.Add(short)) })
	rec, err = s.PutFenced(ctx, key("a"), []byte("2"), rec.Version, old)
	if err != nil {
		t.Fatalf("PutFenced with a lease that ran out and nobody took: %v", err)
	}

	taken := leaseWhenFree(t, s, "l", long)
	_, err = s.PutFenced(ctx, key("a"), []byte("stale"), rec.Version, old)
	wantErr(t, "PutFenced after somebody took the lease", err, vault.ErrFenced)
	forged := taken
	forged.Holder = old.Holder
	_, err = s.PutFenced(ctx, key("a"), []byte("stale"), rec.Version, forged)
	wantErr(t, "PutFenced with a foreign epoch", err, vault.ErrFenced)
	_, err = s.PutFenced(ctx, key("a"), []byte("stale"), rec.Version, vault.Lease{Name: "never"})
	wantErr(t, "PutFenced without a lease", err, vault.ErrFenced)

	rec, err = s.PutFenced(ctx, key("a"), []byte("3"), rec.Version, taken)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(ctx, taken); err != nil {
		t.Fatal(err)
	}
	_, err = s.PutFenced(ctx, key("a"), []byte("late"), rec.Version, taken)
	wantErr(t, "PutFenced after Release", err, vault.ErrFenced)
	if got, err := s.Get(ctx, key("a")); err != nil || string(got.Data) != "3" {
		t.Errorf("Get = %q, %v; want what the last holder wrote", got.Data, err)
	}
}
