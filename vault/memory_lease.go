package vault

import (
	"context"
	"fmt"
	"time"
)

type memoryLease struct {
	holder  string
	epoch   int64
	expires time.Time
}

// is says whether lease is still the newest acquisition and not released.
func (l memoryLease) is(lease Lease) bool {
	return l.epoch == lease.Epoch && l.holder == lease.Holder && l.holder != ""
}

// Lease implements [Leases].
func (m *Memory) Lease(ctx context.Context, name string, ttl time.Duration) (Lease, error) {
	if err := ValidLease(name, ttl); err != nil {
		return Lease{}, err
	}
	if err := m.lock(ctx); err != nil {
		return Lease{}, err
	}
	defer m.mu.Unlock()
	held, now := m.leases[name], m.clock().Steady
	if remaining := held.expires.Sub(now); held.holder != "" && remaining > 0 {
		return Lease{}, &HeldError{Name: name, Holder: held.holder, Remaining: remaining}
	}
	l := Lease{Name: name, Holder: LeaseHolder(m.holder), Epoch: held.epoch + 1, Expires: now.Add(ttl)}
	m.leases[name] = memoryLease{holder: l.Holder, epoch: l.Epoch, expires: l.Expires}
	return l, nil
}

// Renew implements [Leases].
func (m *Memory) Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	if err := ValidLease(lease.Name, ttl); err != nil {
		return Lease{}, err
	}
	if err := m.lock(ctx); err != nil {
		return Lease{}, err
	}
	defer m.mu.Unlock()
	held := m.leases[lease.Name]
	if !held.is(lease) {
		return Lease{}, fmt.Errorf("renew lease %s: %w", lease.Name, ErrFenced)
	}
	lease.Expires = m.clock().Steady.Add(ttl)
	held.expires = lease.Expires
	m.leases[lease.Name] = held
	return lease, nil
}

// Release implements [Leases].
func (m *Memory) Release(ctx context.Context, lease Lease) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	held := m.leases[lease.Name]
	if !held.is(lease) {
		return fmt.Errorf("release lease %s: %w", lease.Name, ErrFenced)
	}
	// The epoch stays, so that the next one is larger.
	m.leases[lease.Name] = memoryLease{epoch: held.epoch}
	return nil
}
