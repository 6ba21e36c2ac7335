package sqlstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"github.com/usher-mcp/usher/vault"
)

// Copied says what [Copy] carried over.
type Copied struct {
	Records, Counters, Audit int
	// Damaged are records that could not be trusted and stayed behind.
	Damaged []vault.Key
}

// Copy copies records, counters and the audit log from one store to another,
// of whichever dialect, with their versions and times. All arrives or nothing
// does, and what arrived is compared before it counts. Copying again brings over
// what is newer. A store that holds something of its own is refused with
// vault.ErrConflict. Leases stay behind: who holds one does so at one place.
func Copy(ctx context.Context, from, to *Store) (Copied, error) {
	var done Copied
	err := from.snapshot(ctx, func(src querier) error {
		return to.write(ctx, careFull, "copy from "+from.where, func(tx querier) error {
			c := &copier{from: from, to: to, src: src, dst: tx}
			err := c.run(ctx)
			done = c.done
			return err
		})
	})
	return done, err
}

// snapshot runs work in a transaction that sees the store as it is now.
func (s *Store) snapshot(ctx context.Context, work func(querier) error) error {
	opt := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	if s.d.oneWriter {
		opt = nil // it has the file to itself
	}
	tx, err := s.db.BeginTx(ctx, opt)
	if err != nil {
		return s.fail(ctx, "read everything", err)
	}
	defer func() { _ = tx.Rollback() }() // only read from
	return work(tx)
}

// copier is one try of Copy.
type copier struct {
	from, to *Store
	src, dst querier
	done     Copied
}

func (c *copier) run(ctx context.Context) error {
	if err := c.refuseForeign(ctx); err != nil {
		return err
	}
	newest, err := c.records(ctx)
	if err != nil {
		return err
	}
	if err := c.counters(ctx); err != nil {
		return err
	}
	if err := c.audit(ctx); err != nil {
		return err
	}
	var n int64
	if err := c.src.QueryRowContext(ctx, c.from.d.last).Scan(&n); err != nil {
		return fmt.Errorf("read %s: %w", c.from.where, err)
	}
	if err := c.to.d.settle(ctx, c.dst, max(n, newest)); err != nil {
		return err
	}
	return c.compare(ctx)
}

const recordOrder = ` ORDER BY kind, principal, name`

// refuseForeign makes sure that nothing is overwritten that did not come from
// here.
func (c *copier) refuseForeign(ctx context.Context) error {
	known := map[vault.Key]int64{}
	err := eachRow(ctx, c.src, `SELECT kind, principal, name, version FROM usher_records`, 4, func(r row) error {
		known[r.key()] = r.number(3)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", c.from.where, err)
	}
	return eachRow(ctx, c.dst, `SELECT kind, principal, name, version FROM usher_records`+recordOrder, 4, func(r row) error {
		if version, ok := known[r.key()]; !ok || r.number(3) > version {
			return fmt.Errorf("%w: %s has a record %s of its own (copy to an empty store)", vault.ErrConflict, c.to.where, r.key())
		}
		return nil
	})
}

func (c *copier) records(ctx context.Context) (newest int64, err error) {
	err = eachRow(ctx, c.src, `SELECT `+columns+` FROM usher_records`+recordOrder, 7, func(r row) error {
		rec, damage := r.record()
		if damage != nil {
			c.done.Damaged = append(c.done.Damaged, r.key())
			return nil
		}
		newest = max(newest, rec.Version)
		c.done.Records++
		return c.to.carryRecord(ctx, c.dst, rec)
	})
	return newest, err
}

func (s *Store) carryRecord(ctx context.Context, tx querier, rec vault.Record) error {
	_, err := tx.ExecContext(ctx, s.d.sql(`INSERT INTO usher_records AS r (`+columns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (kind, principal, name) DO UPDATE
		SET version = excluded.version, updated = excluded.updated, sum = excluded.sum, data = excluded.data
		WHERE r.version <= excluded.version`),
		rec.Kind, rec.Principal, rec.Name, rec.Version, rec.Updated.UnixMilli(), sum(rec), rec.Data)
	return err
}

func (c *copier) counters(ctx context.Context) error {
	return eachRow(ctx, c.src, `SELECT kind, principal, name, value FROM usher_counters`+recordOrder, 4, func(r row) error {
		c.done.Counters++
		return c.to.carryCounter(ctx, c.dst, r)
	})
}

func (s *Store) carryCounter(ctx context.Context, tx querier, r row) error {
	_, err := tx.ExecContext(ctx, s.d.sql(`INSERT INTO usher_counters (kind, principal, name, value) VALUES ($1, $2, $3, $4)
		ON CONFLICT (kind, principal, name) DO UPDATE SET value = excluded.value`),
		r.text(0), r.text(1), r.text(2), r.number(3))
	return err
}

const auditColumns = `seq, at, principal, action, target, outcome, detail`

func (c *copier) audit(ctx context.Context) error {
	return eachRow(ctx, c.src, `SELECT `+auditColumns+` FROM usher_audit ORDER BY seq`, 7, func(r row) error {
		c.done.Audit++
		return c.to.carryAudit(ctx, c.dst, r)
	})
}

func (s *Store) carryAudit(ctx context.Context, tx querier, r row) error {
	detail, _ := r[6].([]byte) // what is no bytes was none to begin with
	_, err := tx.ExecContext(ctx, s.d.sql(`INSERT INTO usher_audit (`+auditColumns+`) {given} VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (seq) DO NOTHING`),
		r.number(0), r.number(1), r.text(2), r.text(3), r.text(4), r.text(5), append([]byte{}, detail...))
	return err
}

// compare reads both sides in the same order and wants the same bytes.
func (c *copier) compare(ctx context.Context) error {
	skip := map[vault.Key]bool{}
	for _, key := range c.done.Damaged {
		skip[key] = true
	}
	for what, query := range map[string]struct {
		text string
		n    int
	}{
		"records":       {`SELECT ` + columns + ` FROM usher_records` + recordOrder, 7},
		"counters":      {`SELECT kind, principal, name, value FROM usher_counters` + recordOrder, 4},
		"the audit log": {`SELECT ` + auditColumns + ` FROM usher_audit ORDER BY seq`, 7},
	} {
		sums := [2][]byte{}
		for i, q := range []querier{c.src, c.dst} {
			h := sha256.New()
			err := eachRow(ctx, q, query.text, query.n, func(r row) error {
				if what == "records" && skip[r.key()] {
					return nil
				}
				return r.hash(h)
			})
			if err != nil {
				return err
			}
			sums[i] = h.Sum(nil)
		}
		if !bytes.Equal(sums[0], sums[1]) {
			return fmt.Errorf("%w: %s of %s are not what was copied (copy to an empty store)", vault.ErrConflict, what, c.to.where)
		}
	}
	return nil
}

// hash adds the row to a sum, the same for both dialects.
func (r row) hash(h hash.Hash) error {
	for _, v := range r {
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		if v == nil {
			v = ""
		}
		if err := json.NewEncoder(h).Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// eachRow calls do for every row of a query with n columns.
func eachRow(ctx context.Context, q querier, query string, n int, do func(row) error) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the last word
	for rows.Next() {
		r := make(row, n)
		into := make([]any, n)
		for i := range r {
			into[i] = &r[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := do(r); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
