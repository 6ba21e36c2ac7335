package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/vaulttest"
)

// postgresSchema returns the URL of an empty schema, dropped when the test ends.
func postgresSchema(t *testing.T) string {
	t.Helper()
	base := need.Postgres(t)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("usher_test_%d", rand.Int64())
	if _, err := db.ExecContext(t.Context(), `CREATE SCHEMA `+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec(`DROP SCHEMA ` + name + ` CASCADE`); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func TestPostgresContract(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	vaulttest.Run(t, func(t *testing.T) vault.Store { return openPath(t, postgresSchema(t)) })
}

func TestPostgresMigrations(t *testing.T) {
	source := postgresSchema(t)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			s, err := Open(t.Context(), source, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, version := range []int{1, 2, 0, 2} {
		if err := Migrate(t.Context(), source, version); err != nil {
			t.Fatal(err)
		}
	}
	s := openPath(t, source)
	mustPut(t, s, "a", "x")
	if err := setPostgresVersion(t.Context(), s.db, SchemaVersion()+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), source, nil); !errors.Is(err, vault.ErrNewer) {
		t.Errorf("Open = %v, want ErrNewer", err)
	}
}

func TestPostgresProcesses(t *testing.T) { shareBetweenProcesses(t, postgresSchema(t)) }

// While a fenced write is in flight nobody can take the lease from under it.
func TestPostgresFenceHolds(t *testing.T) {
	s := openPath(t, postgresSchema(t))
	l, err := s.Lease(t.Context(), "l", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	err = s.transact(t.Context(), careFull, func(tx querier) error {
		if err := s.checkLease(t.Context(), tx, l); err != nil {
			return err
		}
		_, err := s.db.ExecContext(t.Context(), `SELECT 1 FROM usher_leases WHERE name = 'l' FOR UPDATE NOWAIT`)
		if classifyPostgres(err) != problemAgain {
			t.Errorf("locking the lease's row meanwhile: %v, want that it is locked", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPostgresDamagedRecord(t *testing.T) {
	s := openPath(t, postgresSchema(t))
	rec := mustPut(t, s, "bad", "token")
	good := mustPut(t, s, "good", "x")
	damage(t, s, `UPDATE usher_records SET data = $1 WHERE name = 'bad'`, []byte("tokem"))
	recs, err := s.List(t.Context(), "test", "")
	if !errors.Is(err, vault.ErrCorrupt) || len(recs) != 1 || recs[0].Key != good.Key {
		t.Errorf("List = %v, %v; want the good one and ErrCorrupt", recs, err)
	}
	if kept, err := s.Quarantined(t.Context()); err != nil || len(kept) != 1 || kept[0].Key != rec.Key {
		t.Errorf("Quarantined = %v, %v", kept, err)
	}
}

// A replica hears of the other one's changes, and not through its own eyes only.
func TestPostgresWatchOtherReplica(t *testing.T) {
	source := postgresSchema(t)
	here, there := openPath(t, source), openPath(t, source)
	sub, err := here.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	// The longest key must fit into a notification.
	key := vault.Key{Kind: strings.Repeat("<", 64), Principal: strings.Repeat("\u2028", 170), Name: strings.Repeat(`"`, 1024)}
	rec, err := there.Put(t.Context(), key, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c := nextChange(t, sub); c != (vault.Change{Key: key, Version: rec.Version}) {
		t.Errorf("told of %+v", c)
	}
	if _, err := there.Take(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if c := nextChange(t, sub); c != (vault.Change{Key: key}) {
		t.Errorf("told of %+v", c)
	}
}

// What was changed while the listener was cut off is told after it is back.
func TestPostgresWatchReconnects(t *testing.T) {
	source := postgresSchema(t)
	here, there := openPath(t, source), openPath(t, source)
	sub, err := here.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var cut int
	err = there.db.QueryRowContext(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE query LIKE 'LISTEN "usher_' || left(md5(current_schema()), 16) || '%'`).Scan(&cut)
	if err != nil || cut == 0 {
		t.Fatalf("cut %d listeners off, %v", cut, err)
	}
	rec := mustPut(t, there, "a", "x")
	if c := nextChange(t, sub); c != (vault.Change{Key: rec.Key, Version: rec.Version}) {
		t.Errorf("told of %+v", c)
	}
}

// Nobody there: a clear error that says so and tells no password.
func TestPostgresDown(t *testing.T) {
	address, err := need.Address()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), "postgres://usher:hunter2@"+address+"/usher?sslmode=disable", nil)
	if !errors.Is(err, vault.ErrUnavailable) || !strings.Contains(err.Error(), address) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Open = %v; want ErrUnavailable that names the address and no password", err)
	}
	_, err = Open(t.Context(), "postgres://usher:hunter2@"+address+":x:y/usher", nil)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Open of a bad URL = %v; want an error without the password", err)
	}
}

func TestClassifyState(t *testing.T) {
	for code, want := range map[string]problem{
		"40001": problemAgain, "40P01": problemAgain, "22003": problemRange,
		"25006": problemUnavailable, "53100": problemUnavailable, "57P01": problemUnavailable,
		"08006": problemUnavailable, "42601": problemOther,
	} {
		if got := classifyState(code); got != want {
			t.Errorf("classifyState(%s) = %d, want %d", code, got, want)
		}
	}
}
