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
// removes the rows that nobody has wanted for longer than sweepAfter, which is
// more than clocks are wrong by.
const (
	sweepEvery = 256
	sweepAfter = 30 * 24 * time.Hour
)

// leaseRow is a lease as it stands in the table. Released ones have no holder.
type leaseRow struct {
	vault.LeaseMark
	ttl time.Duration
}

// Lease implements vault.Leases.
//
// A name's first epoch is the time in milliseconds and every later one is one
// more, so epochs grow even across the removal of old rows. The time at which a
// lease expires is written for people and tells one renewal from the next; nobody
// compares it with a clock.
func (s *Store) Lease(ctx context.Context, name string, ttl time.Duration) (vault.Lease, error) {
	if err := vault.ValidLease(name, ttl); err != nil {
		return vault.Lease{}, err
	}
	// Looking first keeps those who wait from competing with those who write.
	row, err := s.leaseRow(ctx, name)
	if err != nil {
		return vault.Lease{}, err
	}
	if err := s.held(name, row, ttl); err != nil {
		return vault.Lease{}, err
	}
	now := s.opt.Clock()
	l := vault.Lease{Name: name, Holder: vault.LeaseHolder(s.holder), Expires: now.Steady.Add(ttl)}
	err = s.write(ctx, careFull, "lease "+name, func(tx querier) error {
		err := tx.QueryRowContext(ctx, s.d.sql(`
			INSERT INTO usher_leases AS l (name, holder, epoch, expires, ttl) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = l.epoch + 1, expires = excluded.expires, ttl = excluded.ttl
			WHERE l.holder = '' OR l.holder = $6 AND l.epoch = $7 AND l.expires = $8
			RETURNING epoch`), l.Name, l.Holder, now.Wall.UnixMilli(), now.Wall.Add(ttl).UnixMilli(), roundUp(ttl),
			row.Holder, row.Epoch, row.Expires).Scan(&l.Epoch)
		if errors.Is(err, sql.ErrNoRows) {
			return vault.ErrHeld
		}
		return err
	})
	if errors.Is(err, vault.ErrHeld) {
		return vault.Lease{}, s.overtaken(ctx, name, ttl)
	}
	if err != nil {
		return vault.Lease{}, err
	}
	s.sightings.Forget(name)
	if l.Epoch%sweepEvery == 0 {
		s.sweep(ctx)
	}
	return l, nil
}

// overtaken is the error for a lease that somebody else took, or renewed, between
// the look and the write.
func (s *Store) overtaken(ctx context.Context, name string, ttl time.Duration) error {
	row, err := s.leaseRow(ctx, name)
	if err == nil {
		err = s.held(name, row, ttl)
	}
	if err != nil {
		return err
	}
	return &vault.HeldError{Name: name, Holder: "a process that has just released it"}
}

// leaseRow reads the row of a lease; one that is not there is like a released one.
func (s *Store) leaseRow(ctx context.Context, name string) (row leaseRow, err error) {
	err = s.retry(ctx, "look at lease "+name, func() error {
		var ttl int64
		err := s.db.QueryRowContext(ctx, s.d.sql(`SELECT holder, epoch, expires, ttl FROM usher_leases WHERE name = $1`), name).
			Scan(&row.Holder, &row.Epoch, &row.Expires, &ttl)
		if errors.Is(err, sql.ErrNoRows) {
			row = leaseRow{}
			return nil
		}
		row.ttl = time.Duration(ttl) * time.Millisecond
		return err
	})
	return row, err
}

// held returns a *vault.HeldError unless the lease may be taken: it was released, or
// this process has seen it unchanged for as long as it was given.
func (s *Store) held(name string, row leaseRow, ttl time.Duration) error {
	if row.Holder == "" {
		s.sightings.Forget(name)
		return nil
	}
	if row.ttl > 0 { // else it was written by an older version, for as long as we would
		ttl = row.ttl
	}
	now := s.opt.Clock()
	wait := s.sightings.Wait(name, row.LeaseMark, ttl, now)
	if wait <= 0 {
		return nil
	}
	return &vault.HeldError{Name: name, Holder: row.Holder, Remaining: wait, Overdue: row.Expires < now.Wall.UnixMilli()}
}

// sweep removes rows of leases that were released or ran out long ago. It is
// house-keeping: if it fails, a later one will do.
func (s *Store) sweep(ctx context.Context) {
	_ = s.write(ctx, careFull, "sweep leases", func(tx querier) error {
		_, err := tx.ExecContext(ctx, s.d.sql(`DELETE FROM usher_leases WHERE expires < $1`),
			s.opt.Clock().Wall.Add(-sweepAfter).UnixMilli())
		return err
	})
}

// Renew implements vault.Leases.
func (s *Store) Renew(ctx context.Context, lease vault.Lease, ttl time.Duration) (vault.Lease, error) {
	if err := vault.ValidLease(lease.Name, ttl); err != nil {
		return vault.Lease{}, err
	}
	now := s.opt.Clock()
	lease.Expires = now.Steady.Add(ttl)
	// It always becomes another value, also when the clock was set back meanwhile:
	// those who wait tell by it that the holder lives.
	err := s.changeLease(ctx, "renew", lease, `UPDATE usher_leases SET
		expires = CASE WHEN expires = $4 THEN expires + 1 ELSE $4 END, ttl = $5
		WHERE name = $1 AND holder = $2 AND epoch = $3`, now.Wall.Add(ttl).UnixMilli(), roundUp(ttl))
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

// roundUp returns whole milliseconds that are not less than ttl.
func roundUp(ttl time.Duration) int64 { return ttl.Milliseconds() + 1 }
