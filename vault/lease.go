package vault

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"sync"
	"time"
)

const (
	firstWait      = 10 * time.Millisecond
	longestWait    = 250 * time.Millisecond
	releaseTimeout = 5 * time.Second
)

// Acquire waits until it gets the lease or ctx ends. It asks again at short,
// growing and jittered intervals, so that a released lease is picked up soon
// and many waiting processes do not ask all at once.
func Acquire(ctx context.Context, s Leases, name string, ttl time.Duration) (Lease, error) {
	wait := firstWait
	for {
		lease, err := s.Lease(ctx, name, ttl)
		if err == nil || !errors.Is(err, ErrHeld) {
			return lease, err
		}
		timer := time.NewTimer(wait/2 + mrand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Lease{}, fmt.Errorf("%w: %w", err, ctx.Err())
		}
		wait = min(2*wait, longestWait)
	}
}

// Hold acquires the lease, runs work under it, renewing it as long as work
// takes, and releases it. The context work gets ends with [ErrFenced] as its
// cause once the lease is lost; that is a courtesy, not the protection: work
// writes with PutFenced.
func Hold(ctx context.Context, s Leases, name string, ttl time.Duration, work func(context.Context, Lease) error) error {
	lease, err := Acquire(ctx, s, name, ttl)
	if err != nil {
		return err
	}
	workCtx, cancel := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		keep(workCtx, cancel, s, lease, ttl)
	}()
	defer func() {
		cancel(nil)
		<-kept
		// Also when the caller has given up: others wait for the name.
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer stop()
		// A failed release only delays the others until the lease runs out.
		_ = s.Release(ctx, lease)
	}()
	return work(workCtx, lease)
}

// Keep renews a lease until release is called, which gives it back; release returns
// when that is done and may be called more than once. lost is told, at most once and
// in a goroutine of its own, when the lease was lost before; it may call release.
func Keep(s Leases, lease Lease, ttl time.Duration, lost func(error)) (release func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	kept := make(chan struct{})
	go func() {
		keep(ctx, cancel, s, lease, ttl)
		close(kept)
		if err := context.Cause(ctx); errors.Is(err, ErrFenced) {
			lost(err)
		}
	}()
	return sync.OnceFunc(func() {
		cancel(nil)
		<-kept
		ctx, stop := context.WithTimeout(context.Background(), releaseTimeout)
		defer stop()
		_ = s.Release(ctx, lease) // a failed one only delays the others until it runs out
	})
}

// keep renews the lease until ctx ends or the lease is lost. An unreachable
// store is asked again until the lease's time has passed.
func keep(ctx context.Context, lost context.CancelCauseFunc, s Leases, lease Lease, ttl time.Duration) {
	tick := time.NewTicker(max(ttl/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		renewCtx, stop := context.WithDeadline(ctx, lease.Expires)
		renewed, err := s.Renew(renewCtx, lease, ttl)
		stop()
		switch {
		case err == nil:
			lease = renewed
		case errors.Is(err, ErrFenced), !time.Now().Before(lease.Expires):
			lost(fmt.Errorf("lease %s: %w", lease.Name, ErrFenced))
			return
		}
	}
}

// ValidLease refuses what no store gives, with [ErrInvalid].
func ValidLease(name string, ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("%w: lease %s for %v, at least 1ms", ErrInvalid, name, ttl)
	}
	return ValidLeaseName(name)
}

// NewHolder names this process for people who ask who holds a lease.
func NewHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// LeaseHolder makes a process's name unique for one acquisition, so that two
// goroutines of a process are two holders.
func LeaseHolder(process string) string { return process + "/" + rand.Text()[:12] }
