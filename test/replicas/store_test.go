package replicas

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
)

// work is what a database has done so far.
type work struct{ commits, wal float64 }

// done asks the database what it has done. Its processes tell what they counted when
// they have been idle for ten seconds.
func done(t *testing.T, db *sql.DB) (w work) {
	t.Helper()
	<-time.After(11 * time.Second)
	err := db.QueryRowContext(t.Context(), `SELECT sum(xact_commit), pg_current_wal_lsn() - '0/0'::pg_lsn FROM pg_stat_database`).Scan(&w.commits, &w.wal)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// What calls, renewals and logins cost the database, for the page about scaling: a
// replica on a database of its own. It runs by hand only, and its bounds are generous:
// they tell when the page has become wrong.
func TestWhatTheStoreDoes(t *testing.T) {
	if !need.Proof() {
		return // a minute of waiting for statistics
	}
	const logins, calls, renewals = 4, 8000, 400
	pg := need.OwnPostgres(t)
	db, err := sql.Open("pgx", pg.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	as := fake.NewAuth(&fake.AuthOptions{Grace: grace})
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	w := newWorld(t, pg.URL)
	for range logins {
		w.login(w.protect(as), as)
	}
	w.start(1)
	w.callsInTurn(400)
	start := done(t, db)
	w.callsInTurn(calls)
	called := done(t, db)
	for i := range renewals {
		as.Expire()
		w.all[0].burst(1, 1, fmt.Sprint("s", i%logins))
	}
	renewed := done(t, db)
	w.all[0].end()
	var login, audit, plain, acts float64
	err = db.QueryRowContext(t.Context(), `SELECT (SELECT avg(pg_column_size(r.*)) FROM usher_records r WHERE kind = 'grant'),
		(SELECT sum(pg_column_size(a.*)) FROM usher_audit a), (SELECT sum(octet_length(detail)) FROM usher_audit)`).Scan(&login, &audit, &plain)
	if err != nil {
		t.Fatal(err)
	}
	acts = float64(w.audit().Acts)
	for _, f := range []struct {
		name       string
		value, max float64
	}{
		{"transactions per 1,000 calls", (called.commits - start.commits) / calls * 1000, 50},
		{"bytes of write-ahead log per call", (called.wal - start.wal) / calls, 1500},
		{"bytes of audit trail per call", plain / acts, 100},
		{"bytes of them on disk, where equal calls compress well", audit / acts, 100},
		{"transactions per renewal", (renewed.commits - called.commits) / renewals, 20},
		{"bytes of write-ahead log per renewal", (renewed.wal - called.wal) / renewals, 160 << 10},
		{"bytes of a stored login", login, 4 << 10},
	} {
		t.Logf("%.1f %s", f.value, f.name)
		if f.value > f.max || f.value <= 0 {
			t.Errorf("%.1f %s, want at most %.0f", f.value, f.name, f.max)
		}
	}
}
