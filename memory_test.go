package usher

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/vault"
)

// What a server offers comes back from the store as it was.
func TestMemoryKeepsTheCatalog(t *testing.T) {
	store := vault.NewMemory()
	m := &memory{eras: vault.NewEras(store), catalogs: store}
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
