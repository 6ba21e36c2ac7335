package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"

	"github.com/usher-mcp/usher/vault"
)

// care is how much a write matters.
type care int

const (
	// careLittle is for what may be lost in a power failure, though not with the
	// process: what is learned again, and the audit trail, whose blocks come every
	// second.
	careLittle care = iota
	// careCount is for counters: durable, but of no use in a copy of the file.
	careCount
	// careFull is for everything else: durable when it returns, and in the file itself
	// when the process has ended.
	careFull
)

func careOf(kind string) care {
	if vault.Expendable(kind) {
		return careLittle
	}
	return careFull
}

// write runs work in a transaction, again as long as only other writers are in the
// way. work may therefore run more than once.
func (s *Store) write(ctx context.Context, c care, what string, work func(tx querier) error) error {
	if broken := s.broken.Load(); broken != nil {
		return fmt.Errorf("%s: %w", what, broken)
	}
	if c == careFull {
		s.untidy.Store(true)
	}
	if s.d.oneWriter {
		return s.writeInTurn(ctx, c, what, work)
	}
	return s.retry(ctx, what, func() error { return s.transact(ctx, c, work) })
}

// transact runs work in one transaction.
func (s *Store) transact(ctx context.Context, c care, work func(tx querier) error) error {
	if c > careLittle || s.path == "" {
		return transact(ctx, s.db, work)
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // gives the connection back to the pool
	if _, err := conn.ExecContext(ctx, `PRAGMA synchronous = NORMAL`); err != nil {
		return err
	}
	err = transact(ctx, conn, work)
	if _, back := conn.ExecContext(context.WithoutCancel(ctx), `PRAGMA synchronous = FULL`); back != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // nobody may write durably with it
	}
	return err
}

type beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

func transact(ctx context.Context, db beginner, work func(tx querier) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		_ = tx.Rollback() // the first error says why; an unfinished transaction changes nothing
		return err
	}
	return tx.Commit()
}

// maxLeft is the largest log that is left behind: the process that opens the store next reads
// it as a whole.
const maxLeft = 256 << 10

// leaves says whether the end of the process may close the store.
func (s *Store) leaves() bool {
	if !s.opt.Exits || s.path == "" || s.untidy.Load() {
		return false
	}
	log, err := os.Stat(s.path + "-wal")
	return err == nil && log.Size() < maxLeft
}
