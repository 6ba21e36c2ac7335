package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	postgresConns   = 8
	postgresConnect = 5 * time.Second // unless the URL says otherwise
	postgresNow     = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`
	// postgresChannel is one per schema: two installations in a database do
	// not hear each other.
	postgresChannel = `'usher_' || left(md5(current_schema()), 16)`
)

func postgresDialect() *dialect {
	return &dialect{
		marks: strings.NewReplacer(
			"{now}", postgresNow,
			"{share}", "FOR SHARE",
			"{given}", "OVERRIDING SYSTEM VALUE",
			"{next}", "SELECT nextval('usher_sequence'), "+postgresNow,
		),
		steps: func(m migration) (up, down []string) { return m.postgresUp, m.postgresDown },
		// Released when the transaction ends; nothing else uses advisory locks.
		guard:      `SELECT pg_advisory_xact_lock(hashtext('usher migration ' || current_schema()))`,
		version:    postgresVersion,
		setVersion: setPostgresVersion,
		last:       `SELECT last_value FROM usher_sequence`,
		settle:     settlePostgres,
		classify:   classifyPostgres,
	}
}

// connectPostgres makes the pool; nothing is dialled yet.
func (s *Store) connectPostgres(source string) error {
	cfg, err := pgx.ParseConfig(source)
	if err != nil {
		return fmt.Errorf("open store: %w", err) // pgx hides the password
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = postgresConnect
	}
	s.d = postgresDialect()
	s.where = fmt.Sprintf("postgres://%s:%d/%s", cfg.Host, cfg.Port, cfg.Database)
	s.db = stdlib.OpenDB(*cfg)
	s.db.SetMaxOpenConns(postgresConns)
	s.db.SetMaxIdleConns(postgresConns)
	s.notify = s.notifyPostgres
	s.feed = func(ctx context.Context) (feed, error) {
		f := &postgresFeed{cfg: cfg, self: s.self}
		return f, f.connect(ctx)
	}
	return nil
}

// notifyPostgres sends the hint in a transaction of its own: inside the one
// that writes, all writers would queue for the one lock that orders
// notifications.
func (s *Store) notifyPostgres(ctx context.Context, payload string) error {
	_, err := s.db.ExecContext(ctx, `SELECT pg_notify(`+postgresChannel+`, $1)`, payload)
	return err
}

func postgresVersion(ctx context.Context, q querier) (version int, err error) {
	var ours bool
	// Asking for a table that is not there would spoil the transaction, and
	// to_regclass answers from a cache that does not yet know of what another
	// session made while this transaction waited for its turn.
	err = q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables
		WHERE schemaname = current_schema() AND tablename = 'usher_schema')`).Scan(&ours)
	if err != nil || !ours {
		return 0, err
	}
	err = q.QueryRowContext(ctx, `SELECT version FROM usher_schema`).Scan(&version)
	return version, err
}

func setPostgresVersion(ctx context.Context, q querier, version int) error {
	for _, statement := range []string{
		`CREATE TABLE IF NOT EXISTS usher_schema (id BIGINT PRIMARY KEY CHECK (id = 1), version BIGINT NOT NULL)`,
		fmt.Sprintf(`INSERT INTO usher_schema (id, version) VALUES (1, %d)
			ON CONFLICT (id) DO UPDATE SET version = excluded.version`, version),
	} {
		if _, err := q.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func settlePostgres(ctx context.Context, q querier, version int64) error {
	if _, err := q.ExecContext(ctx, `SELECT setval('usher_sequence', GREATEST($1::bigint, last_value, 1)) FROM usher_sequence`, version); err != nil {
		return err
	}
	_, err := q.ExecContext(ctx, `SELECT setval(pg_get_serial_sequence('usher_audit', 'seq'), GREATEST(max(seq), 1)) FROM usher_audit`)
	return err
}

func classifyPostgres(err error) problem {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyState(e.Code)
	}
	_, isConnect := errors.AsType[*pgconn.ConnectError](err)
	_, isNet := errors.AsType[net.Error](err)
	if isConnect || isNet || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed) {
		return problemUnavailable
	}
	return problemOther
}

// classifyState reads an SQLSTATE.
func classifyState(code string) problem {
	switch {
	case code == "40001", code == "40P01", code == "55P03": // serialization, deadlock, lock timeout
		return problemAgain
	case code == "22003": // numeric value out of range
		return problemRange
	case code == "25006", // read-only: a standby, or a failover in progress
		strings.HasPrefix(code, "08"),  // connection
		strings.HasPrefix(code, "53"),  // out of connections, memory, disk
		strings.HasPrefix(code, "57P"), // shutting down, starting up
		strings.HasPrefix(code, "58"):  // the server's own I/O
		return problemUnavailable
	}
	return problemOther
}
