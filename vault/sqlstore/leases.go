package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// A lease whose holder died stays as a row. One acquisition in sweepEvery
// removes the rows that nobody has wanted for longer than sweepAfter.
const (
	sweepEvery = 256
	sweepAfter = 24 * time.Hour
)

// Lease implements vault.Leases.
//
// A name's first epoch is the time in milliseconds and every later one is one
// more, so epochs grow even across the removal of old rows.
func (s *Store) Lease(ctx context.Context, name string, ttl time.Duration) (vault.Lease, error) {
	if err := vault.ValidLease(name, ttl); err != nil {
		return vault.Lease{}, err
	}
	// Looking first keeps those who wait from competing with those who write.
	if err := s.held(ctx, name); err != nil {
		return vault.Lease{}, err
	}
	l := vault.Lease{Name: name, Holder: vault.LeaseHolder(s.holder), Expires: time.Now().Add(ttl)}
	err := s.write(ctx, careFull, "lease "+name, func(tx querier) error {
		err := tx.QueryRowContext(ctx, s.d.sql(`
			INSERT INTO usher_leases AS l (name, holder, epoch, expires) VALUES ($1, $2, {now}, {now} + $3)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = l.epoch + 1, expires = excluded.expires
			WHERE l.expires <= {now}
			RETURNING epoch`), l.Name, l.Holder, roundUp(ttl)).Scan(&l.Epoch)
		if errors.Is(err, sql.ErrNoRows) {
			return vault.ErrHeld
		}
		return err
	})
	if errors.Is(err, vault.ErrHeld) {
		if held := s.held(ctx, name); held != nil {
			return vault.Lease{}, held
		}
		return vault.Lease{}, &vault.HeldError{Name: name, Holder: "somebody who just left"}
	}
	if err != nil {
		return vault.Lease{}, err
	}
	if l.Epoch%sweepEvery == 0 {
		s.sweep(ctx)
	}
	return l, nil
}

// held returns a *vault.HeldError if somebody has the lease.
func (s *Store) held(ctx context.Context, name string) error {
	var holder string
	var remaining int64
	err := s.retry(ctx, "look at lease "+name, func() error {
		err := s.db.QueryRowContext(ctx, s.d.sql(`SELECT holder, expires - {now} FROM usher_leases
			WHERE name = $1 AND expires > {now}`), name).Scan(&holder, &remaining)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || remaining <= 0 {
		return err
	}
	return &vault.HeldError{Name: name, Holder: holder, Remaining: time.Duration(remaining) * time.Millisecond}
}

// sweep removes rows of leases long run out. It is house-keeping: if it fails,
// a later one will do.
func (s *Store) sweep(ctx context.Context) {
	_ = s.write(ctx, careFull, "sweep leases", func(tx querier) error {
		_, err := tx.ExecContext(ctx, s.d.sql(`DELETE FROM usher_leases WHERE expires < {now} - $1`),
			sweepAfter.Milliseconds())
		return err
	})
}

// Renew implements vault.Leases.
func (s *Store) Renew(ctx context.Context, lease vault.Lease, ttl time.Duration) (vault.Lease, error) {
	if err := vault.ValidLease(lease.Name, ttl); err != nil {
		return vault.Lease{}, err
	}
	lease.Expires = time.Now().Add(ttl)
	err := s.changeLease(ctx, "renew", lease, `UPDATE usher_leases SET expires = {now} + $4
		WHERE name = $1 AND holder = $2 AND epoch = $3`, roundUp(ttl))
	if err != nil {
		return vault.Lease{}, err
	}
	return lease, nil
}

// Release implements vault.Leases. The row stays, so that the next epoch is
// larger.
func (s *Store) Release(ctx context.Context, lease vault.Lease) error {
	return s.changeLease(ctx, "release", lease, `UPDATE usher_leases SET holder = '', expires = 0
		WHERE name = $1 AND holder = $2 AND epoch = $3 AND holder <> ''`)
}

func (s *Store) changeLease(ctx context.Context, verb string, lease vault.Lease, statement string, more ...any) error {
	return s.write(ctx, careFull, verb+" lease "+lease.Name, func(tx querier) error {
		args := append([]any{lease.Name, lease.Holder, lease.Epoch}, more...)
		n, err := affected(tx.ExecContext(ctx, s.d.sql(statement), args...))
		if err == nil && n == 0 {
			return vault.ErrFenced
		}
		return err
	})
}

// checkLease fails unless lease is the newest acquisition of its name, and
// keeps it so until the transaction ends.
func (s *Store) checkLease(ctx context.Context, tx querier, lease vault.Lease) error {
	var epoch int64
	err := tx.QueryRowContext(ctx, s.d.sql(`SELECT epoch FROM usher_leases
		WHERE name = $1 AND holder = $2 AND epoch = $3 AND holder <> '' {share}`),
		lease.Name, lease.Holder, lease.Epoch).Scan(&epoch)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("lease %s: %w", lease.Name, vault.ErrFenced)
	}
	return err
}

// roundUp returns whole milliseconds that are surely not less than ttl, though
// the database's clock is cut off to milliseconds too.
func roundUp(ttl time.Duration) int64 { return ttl.Milliseconds() + 2 }
