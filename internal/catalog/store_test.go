package catalog

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/vault"
)

// What a server offers comes back from the store as it was.
func TestStoreKeepsTheCatalog(t *testing.T) {
	store := vault.NewMemory()
	m := newStored(store)
	k := host.Key{Principal: "p", Server: "s", Account: "work"}
	want := host.Catalog{
		Tools: [][]byte{[]byte(`{"name":"a"}`)}, Prompts: [][]byte{[]byte(`{"name":"b"}`)},
		Version: "2026-07-28", Info: []byte(`{"name":"S"}`), Capabilities: []byte(`{"tools":{}}`), Instructions: "be kind",
		At: time.Now().UTC().Truncate(time.Second), TTL: time.Minute, Public: true,
	}
	m.RememberTools(t.Context(), k, "digest", want)
	got, ok := m.Tools(t.Context(), k, "digest")
	if !ok {
		t.Fatal("nothing is remembered")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got, _ := m.Tools(t.Context(), k, "another"); !got.Stale {
		t.Error("what another definition offered passes for fresh")
	}
}

// writes counts what is written to a store.
type writes struct {
	vault.Store
	n int
}

func (w *writes) Put(ctx context.Context, key vault.Key, data []byte, ifVersion int64) (vault.Record, error) {
	w.n++
	return w.Store.Put(ctx, key, data, ifVersion)
}

// TestStoreWritesOnlyWhatChanged: a call whose server is as it was writes nothing, since
// every write waits for the disk.
func TestStoreWritesOnlyWhatChanged(t *testing.T) {
	store := &writes{Store: vault.NewMemory()}
	m := newStored(store)
	k := host.Key{Principal: vault.Local, Server: "s"}
	at := time.Now()
	c := host.Catalog{Tools: [][]byte{[]byte(`{"name":"a"}`)}, Version: "2026-07-28", At: at}
	for _, tt := range []struct {
		name   string
		change func()
		want   int
	}{
		{"first", func() {}, 2},
		{"the same", func() { c.At = at.Add(time.Second) }, 0},
		{"seen long after", func() { c.At = at.Add(sameFor) }, 1},
		{"another tool", func() { c.Tools = [][]byte{[]byte(`{"name":"b"}`)} }, 1},
		{"another time to live", func() { c.TTL = time.Minute }, 1},
		{"still fresh", func() { c.At = c.At.Add(time.Second) }, 0},
		{"half its time is over", func() { c.At = c.At.Add(time.Minute / 2) }, 1},
		{"another revision", func() { c.Version = "2025-11-25" }, 2},
	} {
		tt.change()
		store.n = 0
		m.RememberEra(t.Context(), "d", c.Version)
		m.RememberTools(t.Context(), k, "d", c)
		if store.n != tt.want {
			t.Errorf("%s: %d writes, want %d", tt.name, store.n, tt.want)
		}
	}
}
