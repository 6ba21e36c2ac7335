package usher

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// A singleton is run by one host at a time: the others say where, and take over when
// it ends there.
func TestSingletonRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := vault.NewMemory()
		a, b := &Host{store: store}, &Host{store: store}
		at := "http://10.0.0.5:7331"
		a.peer.Store(&at)
		srv := config.Server{Name: "db"}
		release, err := a.singleton(t.Context(), srv)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // it is renewed
		_, err = b.singleton(t.Context(), srv)
		for _, want := range []string{"runs in the usher at http://10.0.0.5:7331 (", "http://10.0.0.5:7331/servers/db/mcp", "usher stop db"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("a second one: %v, want %q", err, want)
			}
		}
		other, err := b.singleton(t.Context(), config.Server{Name: "other"})
		if err != nil {
			t.Fatalf("another server: %v", err)
		}
		other()
		release()
		release()
		if release, err = b.singleton(t.Context(), srv); err != nil {
			t.Fatalf("after the first has ended: %v", err)
		}
		// b has no address, and what a noted is out of date.
		if _, err = a.singleton(t.Context(), srv); err == nil || strings.Contains(err.Error(), "10.0.0.5") {
			t.Fatalf("a third one: %v", err)
		}
		release()
	})
}
