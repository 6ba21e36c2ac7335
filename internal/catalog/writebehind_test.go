package catalog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/vault"
)

// A queued value is readable at once, and its newest form is in the store a moment later.
func TestWriteBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := vault.NewMemory()
		m := newStored(store)
		s := NewWriteBehind(store)
		k := host.Key{Principal: vault.Local, Server: "s", Account: "work"}
		c := host.Catalog{Tools: [][]byte{[]byte(`{"name":"a"}`)}, Version: "2026-07-28", At: time.Now()}
		s.RememberEra(t.Context(), "d", c.Version)
		s.RememberTools(t.Context(), k, "d", c)
		c.Prompts = [][]byte{[]byte(`{"name":"p"}`)}
		s.RememberTools(t.Context(), k, "d", c)
		if got, ok := s.Tools(t.Context(), k, "d"); !ok || got.Stale || len(got.Prompts) != 1 {
			t.Errorf("it shows %v, %v", got, ok)
		}
		if got, _ := s.Tools(t.Context(), k, "another"); !got.Stale {
			t.Error("what another definition offered passes for fresh")
		}
		if got := s.Accounts(vault.Local); len(got) != 1 || got[0] != "s@work" {
			t.Errorf("accounts %q", got)
		}
		if v, ok := s.Era(t.Context(), "d"); !ok || v != c.Version {
			t.Errorf("era %q, %v", v, ok)
		}
		if _, ok := m.Tools(t.Context(), k, "d"); ok {
			t.Error("it was written at once")
		}
		time.Sleep(2 * flushDelay)
		synctest.Wait()
		if got, ok := m.Tools(t.Context(), k, "d"); !ok || len(got.Prompts) != 1 {
			t.Errorf("the store has %v, %v", got, ok)
		}
		if _, ok := m.Era(t.Context(), "d"); !ok || len(s.tools)+len(s.eras) != 0 {
			t.Errorf("era in the store: %v; left in the queue: %v, %v", ok, s.eras, s.tools)
		}
		// What the store is known to have is not written again, anything else is.
		for _, version := range []string{c.Version, "2025-11-25", c.Version} {
			s.Era(t.Context(), "d")
			s.RememberEra(t.Context(), "d", version)
			if version == c.Version && len(s.inStore) == 1 && len(s.eras) != 0 {
				t.Errorf("%s was queued again", version)
			}
			time.Sleep(2 * flushDelay)
			synctest.Wait()
			if got, _ := m.Era(t.Context(), "d"); got != version {
				t.Errorf("the store has era %q, not %q", got, version)
			}
		}
		s.RememberEra(t.Context(), "last", c.Version)
		s.Close()
		if _, ok := m.Era(t.Context(), "last"); !ok {
			t.Error("what was left is lost")
		}
		s.RememberEra(t.Context(), "late", c.Version) // must not start anything
		s.Close()
	})
}
