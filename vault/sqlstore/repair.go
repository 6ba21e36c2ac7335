package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite"

	"github.com/usher-mcp/usher/vault"
)

// Repaired says what [Repair] did.
type Repaired struct {
	Path string
	// Found is what was wrong; empty when nothing was, and nothing was changed.
	Found []string
	// Copy is where the damaged file was kept.
	Copy string
	// Records, Counters and Audit are how many could be read and are in the new
	// file; Quarantined were damaged and set aside there.
	Records, Counters, Audit, Quarantined int
}

// versionGap keeps the versions of a repaired store apart from those that may
// have been in what could not be read.
const versionGap = 1 << 20

// Repair makes a new file of all that can be read of a damaged SQLite store and
// puts it in the old one's place, of which a copy is kept. No other process may
// use the store meanwhile; if one does, the error is vault.ErrUnavailable. A file
// of which nothing can be read stays where it is.
func Repair(ctx context.Context, source string) (Repaired, error) {
	if err := CheckSource(source); err != nil {
		return Repaired{}, fmt.Errorf("repair the store: %w", err)
	}
	if IsPostgres(source) {
		return Repaired{}, fmt.Errorf("%w: only a SQLite file can be repaired here (for PostgreSQL use its own tools and backups)", vault.ErrInvalid)
	}
	path, err := filepath.Abs(strings.TrimPrefix(source, "sqlite:"))
	if err != nil {
		return Repaired{}, fmt.Errorf("repair the store: %w", err)
	}
	done := Repaired{Path: path}
	if _, err := os.Stat(path); err != nil {
		return done, fmt.Errorf("repair the store: %w", err)
	}
	if err := prepareFile(path); err != nil {
		return done, fmt.Errorf("repair %s: %w", path, err)
	}
	// Before anything opens the file: opening alone may change it.
	earlier, _ := filepath.Glob(path + ".corrupt-*") // the pattern is fine, or there are none
	if done.Copy, err = keepCopy(path); err != nil {
		return done, fmt.Errorf("repair %s: keep a copy: %w", path, err)
	}
	old, err := openAlone(ctx, path)
	if err != nil {
		return done, fmt.Errorf("repair %s: %w", path, err)
	}
	defer func() { _ = old.close() }() // its file has been replaced, or is as it was
	if done.Found, err = old.examine(ctx); err != nil {
		return done, fmt.Errorf("repair %s: %w", path, err)
	}
	if len(done.Found) == 0 {
		if !slices.Contains(earlier, done.Copy) {
			err = errors.Join(os.Remove(done.Copy), removeIfThere(done.Copy+"-wal"))
		}
		done.Copy = ""
		return done, err
	}
	if err := old.rescue(ctx, &done); err != nil {
		return done, fmt.Errorf("repair %s (a copy is at %s): %w", path, done.Copy, err)
	}
	return done, nil
}

// damagedFile is a store that is read with no trust in it. conn is the only
// connection and has the file to itself.
type damagedFile struct {
	path string
	db   *sql.DB
	conn *sql.Conn
}

// openAlone opens the file and keeps everybody else out.
func openAlone(ctx context.Context, path string) (*damagedFile, error) {
	connector, err := sqlite.NewConnector(sqliteDSN(path) + "&_pragma=locking_mode(EXCLUSIVE)")
	if err != nil {
		return nil, err
	}
	f := &damagedFile{path: path, db: sql.OpenDB(connector)}
	f.db.SetMaxOpenConns(1)
	if f.conn, err = f.db.Conn(ctx); err == nil {
		// Leaving the log's mode writes it into the file and takes the lock for
		// good: nothing of the old file is then beside the new one.
		_, err = f.conn.ExecContext(ctx, `PRAGMA journal_mode = DELETE`)
	}
	if err == nil {
		_, err = f.conn.ExecContext(ctx, `BEGIN EXCLUSIVE`)
	}
	switch classifySQLite(err) {
	case problemAgain:
		err = fmt.Errorf("%w: another process uses it (stop all usher processes first)", vault.ErrUnavailable)
	case problemDamaged:
		err = fmt.Errorf("nothing can be read of it: %w (restore a backup, or move the file away and log in again)",
			&vault.CorruptError{Path: path, Err: err})
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *damagedFile) close() error {
	var err error
	if f.conn != nil {
		err = f.conn.Close()
	}
	return errors.Join(err, f.db.Close())
}

// examine lists what is wrong: pages, and records whose sums do not fit.
func (f *damagedFile) examine(ctx context.Context) (found []string, err error) {
	note := func(err error) {
		if err != nil && !slices.Contains(found, err.Error()) {
			found = append(found, err.Error())
		}
	}
	var version int
	err = f.conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	if err == nil && version > SchemaVersion() {
		return nil, fmt.Errorf("%w: it has schema %d, this usher knows %d", vault.ErrNewer, version, SchemaVersion())
	}
	_, err = sqliteVersion(ctx, f.conn, f.path)
	note(err)
	note(eachRow(ctx, f.conn, `PRAGMA integrity_check(20)`, 1, func(r row) error {
		if text := r.text(0); text != "ok" {
			found = append(found, text)
		}
		return nil
	}))
	note(eachRow(ctx, f.conn, `SELECT `+columns+` FROM usher_records`, 7, func(r row) error {
		if _, damage := r.record(); damage != nil {
			found = append(found, fmt.Sprintf("record %s: %v", r.key(), damage))
		}
		return nil
	}))
	return found, ctx.Err()
}

// rescue writes what can be read to a new file and puts it in the old one's place.
func (f *damagedFile) rescue(ctx context.Context, done *Repaired) error {
	next := f.path + ".repaired"
	for _, file := range companions(next) {
		if err := removeIfThere(file); err != nil { // of a repair that was interrupted
			return err
		}
	}
	s, err := Open(ctx, next, nil)
	if err != nil {
		return err
	}
	err = s.write(ctx, careFull, "write what could be read", func(tx querier) error { return f.salvage(ctx, s, tx, done) })
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if done.Records+done.Counters+done.Audit == 0 {
		return errors.Join(fmt.Errorf("%w: nothing could be read (restore a backup, or move the file away and log in again)", vault.ErrCorrupt),
			os.Remove(next))
	}
	if err := os.Rename(next, f.path); err != nil {
		return err
	}
	return syncDirs(filepath.Dir(f.path))
}

// salvage copies table by table. A table is read from both ends, and records by
// kind as well: a damaged page ends a scan, and the next one gets behind it.
func (f *damagedFile) salvage(ctx context.Context, s *Store, tx querier, done *Repaired) error {
	*done = Repaired{Path: done.Path, Found: done.Found, Copy: done.Copy}
	newest, err := f.salvageRecords(ctx, s, tx, done)
	if err != nil {
		return err
	}
	done.Counters, err = f.bothWays(ctx, `SELECT kind, principal, name, value FROM usher_counters`, recordOrder, 4,
		func(r row) string { return r.key().String() },
		func(r row) error { return s.carryCounter(ctx, tx, r) })
	if err != nil {
		return err
	}
	done.Audit, err = f.bothWays(ctx, `SELECT `+auditColumns+` FROM usher_audit`, ` ORDER BY seq`, 7,
		func(r row) string { return fmt.Sprint(r[0]) },
		func(r row) error { return s.carryAudit(ctx, tx, r) })
	if err != nil {
		return err
	}
	var sequence int64
	_ = f.conn.QueryRowContext(ctx, s.d.last).Scan(&sequence) // the gap makes up for it
	return s.d.settle(ctx, tx, max(sequence, newest)+versionGap)
}

func (f *damagedFile) salvageRecords(ctx context.Context, s *Store, tx querier, done *Repaired) (newest int64, err error) {
	seen := map[vault.Key]bool{}
	carry := func(r row) error {
		rec, damage := r.record()
		if seen[r.key()] {
			return nil
		}
		seen[r.key()] = true
		if damage == nil {
			damage = rec.Validate()
		}
		if damage != nil {
			done.Quarantined++
			return s.quarantine(ctx, tx, r, damage)
		}
		newest = max(newest, rec.Version)
		done.Records++
		return s.carryRecord(ctx, tx, rec)
	}
	queries := []string{`SELECT ` + columns + ` FROM usher_records`}
	for _, kind := range []string{
		vault.KindGrant, vault.KindClient, vault.KindPending, vault.KindSecret, vault.KindKey,
		vault.KindApproval, vault.KindEra, vault.KindCatalog, vault.KindPin, vault.KindBudget, vault.KindStep,
		vault.KindToken, vault.KindGateway, vault.KindAudit,
	} {
		queries = append(queries, `SELECT `+columns+` FROM usher_records WHERE kind = '`+kind+`'`)
	}
	for _, query := range queries {
		if _, err := f.bothWays(ctx, query, recordOrder, 7, func(r row) string { return fmt.Sprint(r[:4]) }, carry); err != nil {
			return 0, err
		}
	}
	return newest, nil
}

// errCarry marks an error of the new file: that one must work.
type errCarry struct{ error }

// bothWays reads a query forwards and backwards, each as far as it goes, and
// carries every row once.
func (f *damagedFile) bothWays(ctx context.Context, query, order string, n int, id func(row) string, carry func(row) error) (int, error) {
	seen := map[string]bool{}
	backwards := strings.ReplaceAll(order, ",", " DESC,") + " DESC"
	for _, direction := range []string{order, backwards} {
		err := eachRow(ctx, f.conn, query+direction, n, func(r row) error {
			if seen[id(r)] {
				return nil
			}
			seen[id(r)] = true
			if err := carry(r); err != nil {
				return &errCarry{err}
			}
			return nil
		})
		if failed, ok := errors.AsType[*errCarry](err); ok {
			return 0, failed.error
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err == nil {
			break // all of it was read
		}
	}
	return len(seen), nil
}

// quarantine keeps a row that is not to be believed.
func (s *Store) quarantine(ctx context.Context, tx querier, r row, damage error) error {
	_, err := tx.ExecContext(ctx, s.d.sql(`INSERT INTO usher_quarantine (at, reason, `+columns+`)
		VALUES ({now}, $1, $2, $3, $4, $5, $6, $7, $8)`), append([]any{damage.Error()}, r...)...)
	return err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
