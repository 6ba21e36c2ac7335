package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/usher-mcp/usher/vault"
)

var _ vault.Keeper = (*Store)(nil)

// Kinds implements vault.Keeper.
func (s *Store) Kinds(ctx context.Context) ([]string, error) {
	var kinds []string
	err := s.retry(ctx, "list kinds", func() error {
		kinds = []string{}
		rows, err := s.db.QueryContext(ctx, `SELECT DISTINCT kind FROM usher_records ORDER BY kind`)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has the last word
		for rows.Next() {
			var kind string
			if err := rows.Scan(&kind); err != nil {
				return err
			}
			kinds = append(kinds, kind)
		}
		return rows.Err()
	})
	return kinds, err
}

// Keys implements vault.Keeper.
func (s *Store) Keys(ctx context.Context, kind string) (keys []vault.Key, err error) {
	err = s.each(ctx, "list the keys of "+kind, func() { keys = []vault.Key{} }, func(rows *sql.Rows) error {
		r := row{kind, nil, nil}
		err := rows.Scan(&r[1], &r[2])
		keys = append(keys, r.key())
		return err
	}, `SELECT principal, name FROM usher_records WHERE kind = $1 ORDER BY principal, name`, kind)
	return keys, err
}

// Rewrite implements vault.Keeper. The time is read in the same transaction,
// because it is under the record's sum.
func (s *Store) Rewrite(ctx context.Context, key vault.Key, data []byte, ifVersion int64, lease vault.Lease) error {
	if err := cmp.Or(key.Validate(), vault.ValidData(data)); err != nil {
		return err
	}
	return s.write(ctx, careFull, "rewrite "+key.String(), func(tx querier) error {
		if err := s.checkLease(ctx, tx, lease); err != nil {
			return err
		}
		var millis int64
		err := tx.QueryRowContext(ctx, s.d.sql(`SELECT updated FROM usher_records
			WHERE kind = $1 AND principal = $2 AND name = $3 AND version = $4`),
			key.Kind, key.Principal, key.Name, ifVersion).Scan(&millis)
		if errors.Is(err, sql.ErrNoRows) {
			return vault.ErrConflict
		}
		if err != nil {
			return err
		}
		rec := vault.Record{Key: key, Version: ifVersion, Updated: fromMillis(millis), Data: append([]byte{}, data...)}
		return s.replace(ctx, tx, rec)
	})
}

// replace writes the data and the sum of a record whose version stays.
func (s *Store) replace(ctx context.Context, tx querier, rec vault.Record) error {
	n, err := affected(tx.ExecContext(ctx, s.d.sql(`UPDATE usher_records SET sum = $5, data = $6
		WHERE kind = $1 AND principal = $2 AND name = $3 AND version = $4`),
		rec.Kind, rec.Principal, rec.Name, rec.Version, sum(rec), rec.Data))
	if err == nil && n == 0 {
		return vault.ErrConflict
	}
	return err
}
