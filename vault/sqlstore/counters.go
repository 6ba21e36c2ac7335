package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Add implements vault.Counters.
func (s *Store) Add(ctx context.Context, key vault.Key, delta int64) (int64, error) {
	sums, err := s.AddAll(ctx, vault.Count{Key: key, Value: delta})
	if err != nil {
		return 0, err
	}
	return sums[0], nil
}

// AddAll implements vault.Counters, with one statement: SQLite takes longer to read one
// than to run it.
func (s *Store) AddAll(ctx context.Context, deltas ...vault.Count) ([]int64, error) {
	if err := vault.ValidDeltas(deltas); err != nil || len(deltas) == 0 {
		return nil, err
	}
	// In one order everywhere, or two writers could wait for each other.
	ordered := slices.SortedFunc(slices.Values(deltas), func(a, b vault.Count) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	statement, args := addition(ordered)
	sums := make(map[vault.Key]int64, len(deltas))
	err := s.write(ctx, careCount, "add to "+ordered[0].Key.String(), func(tx querier) error {
		rows, err := tx.QueryContext(ctx, s.d.sql(statement), args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has the last word
		for rows.Next() {
			var c vault.Count
			if err := rows.Scan(&c.Kind, &c.Principal, &c.Name, &c.Value); err != nil {
				return err
			}
			sums[c.Key] = c.Value
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	values := make([]int64, len(deltas))
	for i, d := range deltas {
		values[i] = sums[d.Key]
	}
	return values, nil
}

// addition is the statement that adds to counters, and its arguments.
func addition(deltas []vault.Count) (statement string, args []any) {
	var b strings.Builder
	b.WriteString(`INSERT INTO usher_counters AS c (kind, principal, name, value) VALUES `)
	for i, d := range deltas {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "($%d, $%d, $%d, $%d)", 4*i+1, 4*i+2, 4*i+3, 4*i+4)
		args = append(args, d.Kind, d.Principal, d.Name, d.Value)
	}
	b.WriteString(` ON CONFLICT (kind, principal, name) DO UPDATE SET value = c.value + excluded.value
		RETURNING kind, principal, name, value`)
	return b.String(), args
}

// Counts implements vault.Counters.
func (s *Store) Counts(ctx context.Context, kind, principal string) ([]vault.Count, error) {
	var counts []vault.Count
	err := s.retry(ctx, "list counters of "+kind, func() error {
		counts = []vault.Count{}
		rows, err := s.db.QueryContext(ctx, s.d.sql(`SELECT principal, name, value FROM usher_counters
			WHERE kind = $1 AND ($2 = '' OR principal = $2) ORDER BY principal, name`), kind, principal)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has the last word
		for rows.Next() {
			c := vault.Count{Key: vault.Key{Kind: kind}}
			if err := rows.Scan(&c.Principal, &c.Name, &c.Value); err != nil {
				return err
			}
			counts = append(counts, c)
		}
		return rows.Err()
	})
	return counts, err
}

// Clear implements vault.Counters.
func (s *Store) Clear(ctx context.Context, keys ...vault.Key) error {
	for _, key := range keys {
		if err := key.Validate(); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return s.write(ctx, careCount, fmt.Sprintf("clear %d counters", len(keys)), func(tx querier) error {
		for _, key := range keys {
			if _, err := tx.ExecContext(ctx, s.d.sql(`DELETE FROM usher_counters
				WHERE kind = $1 AND principal = $2 AND name = $3`), key.Kind, key.Principal, key.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Append implements vault.Audits.
func (s *Store) Append(ctx context.Context, entries ...vault.AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	return s.write(ctx, careLittle, "append to the audit log", func(tx querier) error {
		for _, e := range entries {
			e = e.Normalized()
			var at any // NULL: the database's time
			if !e.At.IsZero() {
				at = e.At.UnixMilli()
			}
			_, err := tx.ExecContext(ctx, s.d.sql(`
				INSERT INTO usher_audit (at, principal, action, target, outcome, detail)
				VALUES (COALESCE($1, {now}), $2, $3, $4, $5, $6)`),
				at, e.Principal, e.Action, e.Target, e.Outcome, e.Detail)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Audit implements vault.Audits.
func (s *Store) Audit(ctx context.Context, q vault.AuditQuery) ([]vault.AuditEntry, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = vault.DefaultAuditLimit
	}
	order := "DESC"
	if q.Oldest {
		order = "ASC"
	}
	var found []vault.AuditEntry
	err := s.retry(ctx, "read the audit log", func() error {
		found = []vault.AuditEntry{}
		rows, err := s.db.QueryContext(ctx, s.d.sql(`
			SELECT seq, at, principal, action, target, outcome, detail FROM usher_audit
			WHERE seq > $1 AND ($2 = '' OR principal = $2) ORDER BY seq `+order+` LIMIT $3`), q.After, q.Principal, limit)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has the last word
		for rows.Next() {
			var e vault.AuditEntry
			var at int64
			if err := rows.Scan(&e.Seq, &at, &e.Principal, &e.Action, &e.Target, &e.Outcome, &e.Detail); err != nil {
				return err
			}
			e.At = fromMillis(at)
			e.Detail = append([]byte{}, e.Detail...)
			found = append(found, e)
		}
		return rows.Err()
	})
	if !q.Oldest {
		slices.Reverse(found)
	}
	return found, err
}

// TrimAudit implements vault.Audits.
func (s *Store) TrimAudit(ctx context.Context, before time.Time) (n int64, err error) {
	err = s.write(ctx, careLittle, "trim the audit log", func(tx querier) (err error) {
		n, err = affected(tx.ExecContext(ctx, s.d.sql(`DELETE FROM usher_audit WHERE at < $1`), before.UnixMilli()))
		return err
	})
	return n, err
}
