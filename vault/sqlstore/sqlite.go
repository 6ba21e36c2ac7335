package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/usher-mcp/usher/vault"
)

// applicationID marks the file as ours: "ushr" in ASCII.
const applicationID = 0x75736872

// sqliteConns bounds the connections of one process: a writer, the watcher and
// two readers.
const sqliteConns = 4

func sqliteDialect(path string) *dialect {
	return &dialect{
		marks: strings.NewReplacer(
			"$", "?",
			"{now}", "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)",
			"{share}", "", // the one writer has the file to itself
			"{given}", "",
			"{next}", "UPDATE usher_sequence SET n = n + 1 WHERE id = 1"+
				" RETURNING n, CAST(round(unixepoch('subsec') * 1000) AS INTEGER)",
		),
		oneWriter: true,
		steps:     func(m migration) (up, down []string) { return m.sqliteUp, m.sqliteDown },
		version: func(ctx context.Context, q querier) (int, error) {
			return sqliteVersion(ctx, q, path)
		},
		setVersion: setSQLiteVersion,
		last:       `SELECT n FROM usher_sequence WHERE id = 1`,
		settle: func(ctx context.Context, q querier, version int64) error {
			_, err := q.ExecContext(ctx, `UPDATE usher_sequence SET n = max(n, ?) WHERE id = 1`, version)
			return err
		},
		classify: classifySQLite,
	}
}

// connectSQLite checks the files and makes the pool; nothing is opened yet.
func (s *Store) connectSQLite(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if err := prepareFile(path); err != nil {
		return fmt.Errorf("open store %s: %w", path, err)
	}
	connector, err := sqlite.NewConnector(sqliteDSN(path))
	if err != nil {
		return fmt.Errorf("open store %s: %w", path, err)
	}
	s.d, s.path, s.where, s.feed = sqliteDialect(path), path, path, s.sqliteFeed
	s.db = sql.OpenDB(connector)
	s.db.SetMaxOpenConns(sqliteConns)
	s.db.SetMaxIdleConns(sqliteConns)
	return nil
}

// sqliteDSN names the file so that no character of its path is taken for a
// parameter. Transactions begin by taking the write lock: one that reads first
// and writes later would fail where it should wait. SQLite itself waits only
// shortly, because it does not hear of a cancelled context meanwhile; the rest
// of the waiting is in retry.
func sqliteDSN(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			"busy_timeout(100)", "journal_mode(WAL)", "synchronous(FULL)",
			"cell_size_check(1)", "trusted_schema(0)",
		},
	}.Encode()}
	return u.String()
}

// sqliteVersion reads all it decides on in one statement: another process may create the
// schema at the same time.
func sqliteVersion(ctx context.Context, q querier, path string) (int, error) {
	var version, id, tables int
	err := q.QueryRowContext(ctx, `SELECT
		(SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id),
		(SELECT count(*) FROM sqlite_schema)`).Scan(&version, &id, &tables)
	if err != nil {
		return 0, err
	}
	if id == applicationID {
		return version, nil
	}
	if tables > 0 || version != 0 || id != 0 {
		return 0, fmt.Errorf("%w: %s is a database of another program (set another `store`)", vault.ErrInvalid, path)
	}
	return 0, nil
}

func setSQLiteVersion(ctx context.Context, q querier, version int) error {
	// A PRAGMA takes no parameters.
	for _, pragma := range []string{
		fmt.Sprintf(`PRAGMA user_version = %d`, version),
		fmt.Sprintf(`PRAGMA application_id = %d`, applicationID),
	} {
		if _, err := q.ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return nil
}

func classifySQLite(err error) problem {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return problemOther
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return problemAgain
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_NOLFS:
		return problemUnavailable
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
		return problemDamaged
	case sqlite3.SQLITE_CONSTRAINT:
		// The only constraint a checked statement can break is the type of a
		// counter: a sum beyond int64 becomes a real number.
		return problemRange
	}
	return problemOther
}

// sqliteFeed watches the number that SQLite changes whenever another connection
// commits: one look into shared memory, no reading of tables.
func (s *Store) sqliteFeed(ctx context.Context) (feed, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	f := &sqliteFeed{conn: conn, tick: time.NewTicker(s.opt.Poll)}
	if f.seen, err = f.look(ctx); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

type sqliteFeed struct {
	conn *sql.Conn
	tick *time.Ticker
	seen int64
}

func (f *sqliteFeed) look(ctx context.Context) (version int64, err error) {
	err = f.conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version)
	return version, err
}

func (f *sqliteFeed) next(ctx context.Context) (vault.Change, bool, error) {
	select {
	case <-f.tick.C:
	case <-ctx.Done():
		return vault.Change{}, false, ctx.Err()
	}
	version, err := f.look(ctx)
	if err != nil || version == f.seen {
		return vault.Change{}, false, err
	}
	f.seen = version
	return vault.Change{}, true, nil
}

func (f *sqliteFeed) close() {
	f.tick.Stop()
	_ = f.conn.Close() // gives the connection back to the pool
}
