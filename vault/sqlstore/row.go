package sqlstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// errDamagedRecord rolls a transaction back in which a damaged record was met.
var errDamagedRecord = errors.New("damaged record")

// row is a stored record as the database gives it, before it is believed: a
// damaged one may have values of any type.
type row []any

func scanRow(rows *sql.Rows) (row, error) {
	r := make(row, 7)
	err := rows.Scan(&r[0], &r[1], &r[2], &r[3], &r[4], &r[5], &r[6])
	return r, err
}

// record returns the record if its parts have the right types and its sum is
// right.
func (r row) record() (vault.Record, error) {
	key, version, updated := r.key(), r.number(3), r.number(4)
	data, ok := r[6].([]byte)
	if !ok && r[6] != nil {
		return vault.Record{}, fmt.Errorf("its data is a %T", r[6])
	}
	rec := vault.Record{Key: key, Version: version, Updated: fromMillis(updated), Data: append([]byte{}, data...)}
	if sum(rec) != r.number(5) {
		return vault.Record{}, errors.New("its checksum is wrong")
	}
	return rec, nil
}

func (r row) key() vault.Key {
	return vault.Key{Kind: r.text(0), Principal: r.text(1), Name: r.text(2)}
}

func (r row) text(i int) string {
	switch v := r[i].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// number returns -1 for what is none; no sum is negative, so it fits no sum.
func (r row) number(i int) int64 {
	if n, ok := r[i].(int64); ok {
		return n
	}
	return -1
}

// sum covers all that a record is. It finds what a disk does, not what an
// attacker does; against those there is sealing.
func sum(rec vault.Record) int64 {
	var buf []byte
	for _, s := range []string{rec.Kind, rec.Principal, rec.Name} {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	buf = binary.BigEndian.AppendUint64(buf, uint64(rec.Version))
	buf = binary.BigEndian.AppendUint64(buf, uint64(rec.Updated.UnixMilli()))
	table := plainTable()
	if len(rec.Data) > shortData {
		table = crc32.MakeTable(crc32.Castagnoli)
	}
	return int64(crc32.Update(crc32.Checksum(buf, table), table, rec.Data))
}

// shortData is up to where it is quicker to go byte by byte than to have hash/crc32
// prepare its quick way, which takes 0.2 ms and is waited for by every command.
const shortData = 16 << 10

// plainTable is the table of the same sum for one byte at a time: hash/crc32 knows its
// own by the pointer.
var plainTable = sync.OnceValue(func() *crc32.Table {
	table := new(crc32.Table)
	for i := range table {
		sum := uint32(i)
		for range 8 {
			sum = sum>>1 ^ crc32.Castagnoli*(sum&1)
		}
		table[i] = sum
	}
	return table
})

func fromMillis(millis int64) time.Time { return time.UnixMilli(millis).UTC() }

// Quarantined is a damaged record that was set aside. Its parts are what could
// still be read of them.
type Quarantined struct {
	vault.Record
	At     time.Time
	Reason string
}

// Quarantined lists the damaged records that were set aside, oldest first.
func (s *Store) Quarantined(ctx context.Context) ([]Quarantined, error) {
	var all []Quarantined
	err := s.retry(ctx, "list damaged records", func() error {
		all = nil
		rows, err := s.db.QueryContext(ctx, `SELECT `+columns+`, at, reason FROM usher_quarantine ORDER BY id`)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has the last word
		for rows.Next() {
			r := make(row, 9)
			if err := rows.Scan(&r[0], &r[1], &r[2], &r[3], &r[4], &r[5], &r[6], &r[7], &r[8]); err != nil {
				return err
			}
			data, _ := r[6].([]byte) // what is no bytes any more cannot be shown as such
			all = append(all, Quarantined{
				Record: vault.Record{Key: r.key(), Version: r.number(3), Updated: fromMillis(r.number(4)), Data: data},
				At:     fromMillis(r.number(7)), Reason: r.text(8),
			})
		}
		return rows.Err()
	})
	return all, err
}

// setAside moves a damaged record to the quarantine, so that its key can be
// used again and nothing is thrown away, and returns the error that says so. If
// it cannot be moved now, it stays and is met again.
func (s *Store) setAside(ctx context.Context, key vault.Key, r row, damage error) error {
	found := &vault.CorruptError{Key: key, Path: s.path, Err: damage}
	err := s.write(ctx, careFull, "set a damaged record aside", func(tx querier) error {
		// The version and sum are part of the condition: somebody may have
		// repaired the record meanwhile.
		const damaged = ` FROM usher_records
			WHERE kind = $1 AND principal = $2 AND name = $3 AND version = $4 AND sum = $5`
		identity := []any{r[0], r[1], r[2], r[3], r[5]}
		_, err := tx.ExecContext(ctx, s.d.sql(`INSERT INTO usher_quarantine (at, reason, `+columns+`)
			SELECT {now}, $6, `+columns+damaged), append(identity, damage.Error())...)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.d.sql(`DELETE`+damaged), identity...)
		return err
	})
	if err != nil {
		found.Err = fmt.Errorf("%w; it could not be set aside: %w", damage, err)
		return found
	}
	s.changed(ctx, vault.Change{Key: key})
	return found
}
