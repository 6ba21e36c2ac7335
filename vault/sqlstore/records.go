package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/vault"
)

const columns = `kind, principal, name, version, updated, sum, data`

// Get implements vault.Records.
func (s *Store) Get(ctx context.Context, key vault.Key) (vault.Record, error) {
	what := "get " + key.String()
	if err := key.Validate(); err != nil {
		return vault.Record{}, err
	}
	rows, err := s.read(ctx, what, `SELECT `+columns+` FROM usher_records
		WHERE kind = $1 AND principal = $2 AND name = $3`, key.Kind, key.Principal, key.Name)
	if err != nil {
		return vault.Record{}, err
	}
	if len(rows) == 0 {
		return vault.Record{}, fmt.Errorf("%s: %w", what, vault.ErrNotFound)
	}
	rec, damage := rows[0].record()
	if damage == nil && rec.Key != key {
		damage = errors.New("it is stored under another key")
	}
	if damage != nil {
		return vault.Record{}, s.setAside(ctx, key, rows[0], damage)
	}
	return rec, nil
}

// List implements vault.Records.
func (s *Store) List(ctx context.Context, kind, principal string) ([]vault.Record, error) {
	rows, err := s.read(ctx, "list "+kind, `SELECT `+columns+` FROM usher_records
		WHERE kind = $1 AND ($2 = '' OR principal = $2) ORDER BY principal, name`, kind, principal)
	if err != nil {
		return nil, err
	}
	recs := make([]vault.Record, 0, len(rows))
	var damages error
	for _, r := range rows {
		rec, damage := r.record()
		if damage != nil {
			damages = errors.Join(damages, s.setAside(ctx, r.key(), r, damage))
			continue
		}
		recs = append(recs, rec)
	}
	return recs, damages
}

// Versions implements vault.Records.
func (s *Store) Versions(ctx context.Context, kind, principal string) (versions map[string]int64, err error) {
	err = s.each(ctx, "list "+kind, func() { versions = map[string]int64{} }, func(rows *sql.Rows) error {
		r := make(row, 2)
		err := rows.Scan(&r[0], &r[1])
		versions[r.text(0)] = r.number(1)
		return err
	}, `SELECT name, version FROM usher_records WHERE kind = $1 AND principal = $2`, kind, principal)
	return versions, err
}

// read runs a query for rows of records.
func (s *Store) read(ctx context.Context, what, query string, args ...any) (found []row, err error) {
	err = s.each(ctx, what, func() { found = nil }, func(rows *sql.Rows) error {
		r, err := scanRow(rows)
		found = append(found, r)
		return err
	}, query, args...)
	return found, err
}

// each runs a query and takes its rows one by one. It may have to begin again, and says
// so each time.
func (s *Store) each(ctx context.Context, what string, begin func(), take func(*sql.Rows) error, query string, args ...any) error {
	if s.path == "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.opt.Busy, errSilent)
		defer cancel()
	}
	return s.retry(ctx, what, func() error {
		begin()
		rows, err := s.query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has the last word
		for rows.Next() {
			if err := take(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// Put implements vault.Records.
func (s *Store) Put(ctx context.Context, key vault.Key, data []byte, ifVersion int64) (vault.Record, error) {
	return s.put(ctx, key, fixed(data), ifVersion, nil)
}

// PutAs implements vault.Keeper.
func (s *Store) PutAs(ctx context.Context, key vault.Key, data func(version int64) []byte, ifVersion int64, lease *vault.Lease) (vault.Record, error) {
	return s.put(ctx, key, data, ifVersion, lease)
}

// fixed is a copy of data, which does not depend on the version.
func fixed(data []byte) func(int64) []byte {
	data = append([]byte{}, data...)
	return func(int64) []byte { return data }
}

// PutFenced implements vault.Records. The lease is checked, and kept from
// changing, in the transaction that writes.
func (s *Store) PutFenced(ctx context.Context, key vault.Key, data []byte, ifVersion int64, lease vault.Lease) (vault.Record, error) {
	return s.put(ctx, key, fixed(data), ifVersion, &lease)
}

func (s *Store) put(ctx context.Context, key vault.Key, data func(int64) []byte, ifVersion int64, fence *vault.Lease) (rec vault.Record, err error) {
	if err := key.Validate(); err != nil {
		return rec, err
	}
	err = s.write(ctx, careOf(key.Kind), "put "+key.String(), func(tx querier) error {
		if fence != nil {
			if err := s.checkLease(ctx, tx, *fence); err != nil {
				return err
			}
		}
		rec = vault.Record{Key: key}
		var millis int64
		if err := tx.QueryRowContext(ctx, s.d.sql(`{next}`)).Scan(&rec.Version, &millis); err != nil {
			return err
		}
		rec.Updated, rec.Data = fromMillis(millis), data(rec.Version)
		if err := vault.ValidData(rec.Data); err != nil {
			return err
		}
		return s.store(ctx, tx, rec, ifVersion)
	})
	if err != nil {
		return vault.Record{}, err
	}
	s.changed(ctx, vault.Change{Key: key, Version: rec.Version})
	return rec, nil
}

// store writes the record if the stored version is still ifVersion.
func (s *Store) store(ctx context.Context, tx querier, rec vault.Record, ifVersion int64) error {
	statement := `INSERT INTO usher_records (kind, principal, name, version, updated, sum, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
	args := []any{rec.Kind, rec.Principal, rec.Name, rec.Version, rec.Updated.UnixMilli(), sum(rec), rec.Data}
	if ifVersion != 0 {
		statement = `UPDATE usher_records SET version = $4, updated = $5, sum = $6, data = $7
			WHERE kind = $1 AND principal = $2 AND name = $3 AND version = $8`
		args = append(args, ifVersion)
	}
	n, err := affected(tx.ExecContext(ctx, s.d.sql(statement), args...))
	if err == nil && n == 0 {
		return vault.ErrConflict
	}
	return err
}

// Delete implements vault.Records.
func (s *Store) Delete(ctx context.Context, key vault.Key, ifVersion int64) error {
	if err := key.Validate(); err != nil {
		return err
	}
	err := s.write(ctx, careOf(key.Kind), "delete "+key.String(), func(tx querier) error {
		n, err := affected(tx.ExecContext(ctx, s.d.sql(`DELETE FROM usher_records
			WHERE kind = $1 AND principal = $2 AND name = $3 AND version = $4`),
			key.Kind, key.Principal, key.Name, ifVersion))
		if err != nil || n > 0 {
			return err
		}
		var version int64
		err = tx.QueryRowContext(ctx, s.d.sql(`SELECT version FROM usher_records
			WHERE kind = $1 AND principal = $2 AND name = $3`), key.Kind, key.Principal, key.Name).Scan(&version)
		if errors.Is(err, sql.ErrNoRows) {
			return vault.ErrNotFound
		}
		if err != nil {
			return err
		}
		return vault.ErrConflict
	})
	if err == nil {
		s.changed(ctx, vault.Change{Key: key})
	}
	return err
}

// Take implements vault.Records. A damaged record is not taken but set aside.
func (s *Store) Take(ctx context.Context, key vault.Key) (rec vault.Record, err error) {
	if err := key.Validate(); err != nil {
		return vault.Record{}, err
	}
	var r row
	var damage error
	err = s.write(ctx, careOf(key.Kind), "take "+key.String(), func(tx querier) error {
		r, damage = nil, nil
		rows, err := tx.QueryContext(ctx, s.d.sql(`DELETE FROM usher_records
			WHERE kind = $1 AND principal = $2 AND name = $3 RETURNING `+columns), key.Kind, key.Principal, key.Name)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has the last word
		if !rows.Next() {
			return cmp.Or(rows.Err(), vault.ErrNotFound)
		}
		if r, err = scanRow(rows); err != nil {
			return err
		}
		if rec, damage = r.record(); damage != nil {
			return errDamagedRecord
		}
		for rows.Next() { // a statement that is not read to its end does not count
		}
		return rows.Err()
	})
	if errors.Is(err, errDamagedRecord) {
		return vault.Record{}, s.setAside(ctx, key, r, damage)
	}
	if err != nil {
		return vault.Record{}, err
	}
	s.changed(ctx, vault.Change{Key: key})
	return rec, nil
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
