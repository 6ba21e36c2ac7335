package replicas

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/sqlstore"
)

// away asks usher status whether a replica can reach its store.
func (r *replica) away() bool {
	cmd := exec.Command(r.w.exe, "status", "--json")
	cmd.Env = append(r.w.env, "USHER_HOME="+r.home)
	out, err := cmd.Output()
	if err != nil {
		r.w.t.Fatalf("usher status: %v", err)
	}
	var board struct {
		Ushers []struct {
			Store struct {
				Away bool `json:"away"`
			} `json:"store"`
		} `json:"ushers"`
	}
	if err := json.Unmarshal(out, &board); err != nil || len(board.Ushers) != 1 {
		r.w.t.Fatalf("usher status: %v: %s", err, out)
	}
	return board.Ushers[0].Store.Away
}

// PostgreSQL is stopped under load, as a crash stops it, and started again: calls with
// good tokens go on all the while, status says what is wrong, and afterwards everything
// is as if nothing had been: one refresh for each login, every call counted once in the
// budget and kept once in the audit trail.
func TestDatabaseStopped(t *testing.T) {
	outage := 2 * time.Second
	if need.Proof() {
		outage = 10 * time.Second
	}
	db := need.OwnPostgres(t)
	as := fake.NewAuth(&fake.AuthOptions{Grace: grace})
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	w := newWorld(t, db.URL)
	w.env = append(w.env, "USHER_BUDGETS_CALLS=1000000", "USHER_BUDGETS_WINDOW=24h")
	names := []string{w.protect(as), w.protect(as)}
	for _, name := range names {
		w.login(name, as)
	}
	w.start(2)
	load := w.call(4, names, 2*time.Millisecond)
	<-time.After(300 * time.Millisecond)
	until(t, "the store is there", func() bool { return !w.all[0].away() })
	if err := db.Halt(); err != nil {
		t.Fatal(err)
	}
	end := time.After(outage)
	if !w.all[0].away() {
		t.Error("status does not say that the store is away")
	}
	<-end
	if err := db.Resume(); err != nil {
		t.Fatal(err)
	}
	until(t, "the store is back", func() bool { return !w.all[0].away() && !w.all[1].away() })
	as.Expire() // now the store is needed
	until(t, "the logins are renewed", func() bool { return refreshes(as).distinct == len(names) })
	<-time.After(300 * time.Millisecond)
	load.end(t, 0)
	if s := refreshes(as); s.distinct != len(names) || len(s.repeated) > 0 || s.refused > 0 {
		t.Errorf("%d refreshes of %d logins, %d of them again, %d refused", s.distinct, len(names), len(s.repeated), s.refused)
	}
	for _, r := range w.all {
		r.end()
	}
	if n := budgeted(t, db.URL); n != int64(load.calls) {
		t.Errorf("%d calls were made, the budget has %d", load.calls, n)
	}
	if a := w.audit(); !a.OK || a.Acts != int64(load.calls) || a.Lost != 0 {
		t.Errorf("%d calls were made, the audit trail has %d and has lost %d; as it was written: %v", load.calls, a.Acts, a.Lost, a.OK)
	}
}

// until waits for something that has to come within some seconds, on a machine with
// nothing else to do.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute it is not so that %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// budgeted is what the processes that have ended took from the budget of all calls.
func budgeted(t *testing.T, url string) (sum int64) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // it was only read
	counts, err := store.Counts(t.Context(), vault.KindBudget, vault.Local)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		sum += c.Value
	}
	return sum
}

// audited is the outcome of usher audit verify.
type audited struct {
	OK   bool  `json:"ok"`
	Acts int64 `json:"acts"`
	Lost int64 `json:"lost"`
}

func (w *world) audit() (a audited) {
	w.t.Helper()
	cmd := exec.Command(w.exe, "audit", "verify", "--json")
	cmd.Env = append(w.env, "USHER_HOME="+w.home("audit"))
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	if err != nil {
		w.t.Errorf("usher audit verify: %v: %s", err, out)
	}
	return a
}
