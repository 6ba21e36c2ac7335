package singleton

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/sqlstore"
	"github.com/usher-mcp/usher/vault/vaulttest"
)

// A singleton is run by one host at a time: the others say where, and take over when
// it ends there.
func TestSingletonRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := vault.NewMemory()
		a, b := New(store, &Options{}), New(store, &Options{})
		a.SetPeer("http://10.0.0.5:7331")
		srv := config.Server{Name: "db"}
		release, err := a.Take(t.Context(), srv)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // it is renewed
		_, err = b.Take(t.Context(), srv)
		for _, want := range []string{"runs in the usher at http://10.0.0.5:7331 (", "http://10.0.0.5:7331/servers/db/mcp", "stop it there"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("a second one: %v, want %q", err, want)
			}
		}
		other, err := b.Take(t.Context(), config.Server{Name: "other"})
		if err != nil {
			t.Fatalf("another server: %v", err)
		}
		other()
		release()
		release()
		if release, err = b.Take(t.Context(), srv); err != nil {
			t.Fatalf("after the first has ended: %v", err)
		}
		// b has no address, and what a noted is out of date.
		if _, err = a.Take(t.Context(), srv); err == nil || strings.Contains(err.Error(), "10.0.0.5") {
			t.Fatalf("a third one: %v", err)
		}
		release()
	})
}

// A host that starts after the one that ran a singleton was killed takes over in the
// same call, though it has never seen the other one.
func TestSingletonOfADeadHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usher", "usher.db")
	open := func(clock vault.Clock) vault.Store {
		s, err := sqlstore.Open(t.Context(), path, &sqlstore.Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	dead := vaulttest.NewHands()
	dead.Step(-time.Hour)
	if _, err := open(dead.Now).Lease(t.Context(), "singleton/db", 4*time.Second); err != nil {
		t.Fatal(err)
	}
	release, err := New(open(nil), &Options{}).Take(t.Context(), config.Server{Name: "db"})
	if err != nil {
		t.Fatal(err)
	}
	release()
}
