// Package sqlstore is the vault.Store that lasts: one SQL implementation with
// two dialects, SQLite in a file (one machine, several processes) and
// PostgreSQL (several machines).
//
// It owns the schema and its migrations, the permissions of the files, what
// happens to damaged records and files, and how changes made elsewhere become
// known. It does not own what records mean, and it does not seal: what is
// handed in is what is written (see vault.Sealed).
//
// The flow of a write: wait for the turn (SQLite has one writer at a time) →
// begin → draw the next version and the database's time from one statement →
// one conditional statement → commit → tell subscribers. The flow of a read:
// one statement → check the record's sum → set a damaged record aside so that
// it never hides the others.
//
// All statements are the same text in both dialects but for the few marks that
// dialect.sql replaces. All times are milliseconds of the database's clock.
package sqlstore
