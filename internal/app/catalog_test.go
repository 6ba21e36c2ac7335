package app

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/policy/pins"
)

func names(known []CachedServer) map[string]int {
	out := map[string]int{}
	for _, s := range known {
		out[s.Account] = len(s.Tools)
	}
	return out
}

// TestKnownNeedsNoConnection wants the catalog of an earlier run to be searched
// while the servers are gone, under the rules of today.
func TestKnownNeedsNoConnection(t *testing.T) {
	cfg := &config.Config{}
	first := opened(t, cfg, "math", "other", "fresh", "denied", "switched-off")
	haveLogin(t, first, "local", "math@work")
	for _, account := range []string{"math", "math@work", "other", "denied", "switched-off"} {
		if _, err := first.Tools(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range cfg.Servers {
		cfg.Servers[i].Disabled = cfg.Servers[i].Name == "switched-off"
	}
	cfg.Usher.Policy.Deny = []config.Rule{{Pattern: "denied"}, {Pattern: "other/pay"}}
	h, err := Open(t.Context(), &Options{Config: cfg, Store: first.store, Transport: unreachable{}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	known, err := h.Catalog().Cached(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := len(fake.DefaultTools())
	if diff := cmp.Diff(map[string]int{"math": all, "math@work": all, "other": all - 1, "fresh": 0}, names(known)); diff != "" {
		t.Errorf("known (-want +got)\n%s", diff)
	}
	for _, s := range known {
		if s.Account == "other" && len(s.Definitions) != all {
			t.Errorf("other has %d definitions, want all %d", len(s.Definitions), all)
		}
		if s.At.IsZero() != (s.Account == "fresh") {
			t.Errorf("%s was read at %v", s.Account, s.At)
		}
	}
	found, err := h.Catalog().Search(t.Context(), "bills", 5)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.Account+"/"+f.Tool.Name)
	}
	if diff := cmp.Diff([]string{"math/pay", "math@work/pay"}, got); diff != "" {
		t.Errorf("found (-want +got)\n%s", diff)
	}
}

// TestLockSpeaksForTheProjectOnly wants the lock beside a project's file to stand
// in for pins of that file's servers, and of no other.
func TestLockSpeaksForTheProjectOnly(t *testing.T) {
	dir := t.TempDir()
	cfg := &config.Config{
		Files:   []config.File{{Path: filepath.Join(dir, ".mcp.json"), Layer: config.LayerProject}},
		Servers: []config.Server{{Name: "docs", Origin: config.Origin{Layer: config.LayerProject}}, {Name: "mine", Origin: config.Origin{Layer: config.LayerUser}}},
	}
	o := &Options{Config: cfg}
	if got := projectLock(o); got != nil {
		t.Errorf("a lock out of nowhere: %v", got)
	}
	lock, err := pins.NewLock(map[string][][]byte{"docs": {[]byte(`{"name":"a"}`)}, "mine": {[]byte(`{"name":"a"}`)}, "gone": nil})
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.WriteFile(LockPath(cfg)); err != nil {
		t.Fatal(err)
	}
	got := projectLock(o)
	if got == nil || len(got.Servers) != 1 || len(got.Servers["docs"]) != 1 {
		t.Errorf("lock %+v, want that of docs only", got)
	}
	if err := os.WriteFile(LockPath(cfg), []byte(`{"version":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := projectLock(o); got != nil {
		t.Errorf("a damaged lock was used: %+v", got)
	}
	if _, err := os.Stat(LockPath(&config.Config{})); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a project file: %v", err)
	}
}

// unreachable is a network on which nobody answers.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nobody may be reached")
}
