package sqlstore

import (
	"context"
	"database/sql"
	"strings"
)

// dialect is all that differs between the two databases. Statements are written
// for PostgreSQL, with marks in braces.
type dialect struct {
	// marks replaces {now}, the database's time in milliseconds, {share}, a row
	// lock against writers, {next}, the statement that draws a version and the
	// time, {given}, which lets a row bring its own number, and the placeholders.
	marks *strings.Replacer
	// oneWriter is set when the database has one writer at a time: waiting for
	// the turn in the process is then kinder than asking the database again.
	oneWriter bool
	// steps picks the dialect's statements of a migration.
	steps func(migration) (up, down []string)
	// guard keeps other processes from migrating until the transaction ends.
	guard string
	// version reads the schema version, 0 for an empty database, and refuses a
	// database that is not ours.
	version func(ctx context.Context, q querier) (int, error)
	// setVersion writes it.
	setVersion func(ctx context.Context, q querier, version int) error
	// last reads the newest version that was drawn.
	last string
	// settle makes all later versions and audit numbers larger than what there
	// is, after rows were brought over with their own.
	settle func(ctx context.Context, q querier, version int64) error
	// classify tells what an error of the driver means.
	classify func(err error) problem
}

// problem is what an error of the database means to us.
type problem int

const (
	problemOther       problem = iota
	problemAgain               // somebody else is writing: the same again may well work
	problemUnavailable         // unreachable, full, read-only
	problemDamaged             // the files cannot be trusted
	problemRange               // a number does not fit
)

// querier is a database, a connection or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// sql returns the statement in the words of the dialect.
func (d *dialect) sql(statement string) string { return d.marks.Replace(statement) }
