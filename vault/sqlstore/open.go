package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Options are the settings of a store; nil and the zero value are fine.
type Options struct {
	// Busy is how long a write waits for other writers before it fails with
	// vault.ErrUnavailable. Default 10 s.
	Busy time.Duration
	// Poll is how often a SQLite store looks for changes made by other
	// processes while somebody watches. Default 250 ms.
	Poll time.Duration
	// Exits says that the process exits right after Close, which then leaves a small
	// write-ahead log next to the file for the next process to apply, as a killed
	// process does: a checkpoint would wait for the disk three times.
	Exits bool
	// Clock counts how long leases of other processes were seen. Default vault.Now.
	Clock vault.Clock
}

func (o *Options) withDefaults() Options {
	var opt Options
	if o != nil {
		opt = *o
	}
	if opt.Busy <= 0 {
		opt.Busy = 10 * time.Second
	}
	if opt.Poll <= 0 {
		opt.Poll = 250 * time.Millisecond
	}
	if opt.Clock == nil {
		opt.Clock = vault.Now
	}
	return opt
}

// Store is a vault.Store in a SQL database.
type Store struct {
	db     *sql.DB
	d      *dialect
	opt    Options
	where  string // the file, or the URL without its password
	path   string // the file; empty when there is none
	holder string
	self   string        // tells our own notifications from others'
	turn   chan struct{} // holds a token while nobody in this process writes
	group  group         // writes that wait for the turn
	notify func(ctx context.Context, payload string) error
	feed   func(ctx context.Context) (feed, error)
	reads  prepared
	watch  watcher
	health health
	// sightings says since when leases of others were seen as they are.
	sightings vault.Sightings

	closed atomic.Bool
	untidy atomic.Bool                        // something was written that must not stay in the log
	broken atomic.Pointer[vault.CorruptError] // set once the file was found damaged
}

var _ vault.Store = (*Store)(nil)

// Open opens the store that source names: a postgres:// URL, or the path of a
// SQLite file, which is made (mode 0600, its directory 0700) if it is not
// there. An older schema is brought up to date; a newer one is refused with
// vault.ErrNewer, files that others can access with vault.ErrExposed, and
// damaged ones with a *vault.CorruptError after a copy was kept.
func Open(ctx context.Context, source string, options *Options) (*Store, error) {
	s, err := connect(ctx, source, options)
	if err != nil {
		return nil, err
	}
	if err := s.upgrade(ctx); err != nil {
		_ = s.Close() // the first error says why
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// connect makes the store without looking at its schema.
func connect(ctx context.Context, source string, options *Options) (*Store, error) {
	s := &Store{
		opt:    options.withDefaults(),
		holder: vault.NewHolder(),
		self:   rand.Text(),
		turn:   make(chan struct{}, 1),
	}
	s.turn <- struct{}{}
	s.watch.starting = make(chan struct{}, 1)
	s.watch.starting <- struct{}{}
	if err := CheckSource(source); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if IsPostgres(source) {
		return s, s.connectPostgres(source)
	}
	return s, s.connectSQLite(strings.TrimPrefix(source, "sqlite:"))
}

// IsPostgres says whether source names a PostgreSQL database and not a file.
func IsPostgres(source string) bool {
	return strings.HasPrefix(source, "postgres://") || strings.HasPrefix(source, "postgresql://")
}

// Close implements vault.Store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.watch.close()
	if s.leaves() {
		return nil
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close store %s: %w", s.where, err)
	}
	return nil
}

// rooms is how many rows take turns to show that there is room.
const rooms = 16

// Ready implements vault.Store. It writes and keeps room bytes: a store with
// that much of its own has room for a record that replaces another one.
func (s *Store) Ready(ctx context.Context, room int) error {
	pad := make([]byte, max(room, 1))
	_, _ = rand.Read(pad) // never fails; random, because equal bytes are not written again
	row := 1
	if !s.d.oneWriter { // or the renewals of all replicas would queue for one row
		row += mrand.IntN(rooms)
	}
	return s.write(ctx, careFull, "check that the store can be written", func(tx querier) error {
		_, err := tx.ExecContext(ctx, s.d.sql(`
			INSERT INTO usher_room (id, pad) VALUES ($1, $2)
			ON CONFLICT (id) DO UPDATE SET pad = excluded.pad`), row, pad)
		return err
	})
}

// retry runs work until something else than other writers stops it, and puts
// the error into the vault's words.
func (s *Store) retry(ctx context.Context, what string, work func() error) error {
	deadline := time.Now().Add(s.opt.Busy)
	if s.path != "" {
		deepen(false)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := work()
		if err == nil {
			s.health.note(nil)
			return nil
		}
		if s.d.classify(err) != problemAgain || time.Now().After(deadline) {
			err = s.fail(ctx, what, err)
			s.health.note(err)
			return err
		}
		timer := time.NewTimer(wait/2 + mrand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}

// fail puts an error of the database into the vault's words.
func (s *Store) fail(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if s.closed.Load() {
		return fmt.Errorf("%s: %w", what, vault.ErrClosed)
	}
	if spoken(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%s in %s: %w: %w (%s)", what, s.where, vault.ErrUnavailable, errSilent, s.hint())
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	switch s.d.classify(err) {
	case problemAgain:
		return fmt.Errorf("%s in %s: %w: others have kept it busy for %v: %w (try again; a hung usher process may hold it)",
			what, s.where, vault.ErrUnavailable, s.opt.Busy, err)
	case problemUnavailable:
		return fmt.Errorf("%s in %s: %w: %w (%s)", what, s.where, vault.ErrUnavailable, err, s.hint())
	case problemDamaged:
		if !s.confirmed(ctx) {
			return fmt.Errorf("%s in %s: %w: %w (%s)", what, s.where, vault.ErrUnavailable, err, s.hint())
		}
		return fmt.Errorf("%s: %w", what, s.damaged(err))
	case problemRange:
		return fmt.Errorf("%s: %w: %w", what, vault.ErrInvalid, err)
	}
	return fmt.Errorf("%s in %s: %w", what, s.where, err)
}

// errSilent is why a read was given up: a database that hangs must not take its
// readers with it.
var errSilent = errors.New("the database does not answer")

// spoken says whether the error is in the vault's words already.
func spoken(err error) bool {
	for _, known := range []error{
		vault.ErrNotFound, vault.ErrConflict, vault.ErrFenced, vault.ErrHeld,
		vault.ErrInvalid, vault.ErrNewer, vault.ErrCorrupt, vault.ErrUnavailable,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func (s *Store) hint() string {
	if s.path == "" {
		return "check that the database is running and reachable"
	}
	return "check the disk's free space and the owner and mode of the file and its directory"
}
