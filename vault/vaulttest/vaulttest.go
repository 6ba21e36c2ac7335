// Package vaulttest is the contract of vault.Store as tests: one suite that the
// in-memory store, SQLite and PostgreSQL all pass.
//
// It owns what every store must do. What only one of them can get wrong
// (files, processes, connections) is tested beside that one.
package vaulttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/vault"
)

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// Run tests the stores that open returns. Each call of open must give an empty
// store of its own and close it when its test ends.
func Run(t *testing.T, open func(t *testing.T) vault.Store) {
	suite := []struct {
		name string
		test func(t *testing.T, s vault.Store)
	}{
		{"get and put", testGetPut},
		{"put needs the version", testConflict},
		{"versions are never used again", testVersions},
		{"delete", testDelete},
		{"take", testTake},
		{"take gives to one", testTakeOnce},
		{"list", testList},
		{"keys are apart", testKeysApart},
		{"data is copied", testCopies},
		{"invalid keys", testInvalid},
		{"concurrent updates", testConcurrentUpdates},
		{"lease", testLease},
		{"lease runs out", testLeaseExpiry},
		{"lease renew", testRenew},
		{"lease excludes", testLeaseExclusion},
		{"fencing", testFencing},
		{"counters", testCounters},
		{"counters at once", testCountersAtOnce},
		{"audit", testAudit},
		{"audit of foreign bytes", testAuditForeign},
		{"watch", testWatch},
		{"ready", testReady},
		{"cancelled", testCancelled},
		{"closed", testClosed},
		{"keeper", testKeeper},
		{"model", testModel},
	}
	for _, tt := range suite {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, open(t)) })
	}
}

func key(name string) vault.Key { return vault.LocalKey("thing", name) }

func mustPut(t testing.TB, s vault.Store, k vault.Key, data string, ifVersion int64) vault.Record {
	t.Helper()
	rec, err := s.Put(t.Context(), k, []byte(data), ifVersion)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// eventually asks again until ok says yes.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never happened: %s", what)
		}
	}
}

func testGetPut(t *testing.T, s vault.Store) {
	ctx := t.Context()
	_, err := s.Get(ctx, key("a"))
	wantErr(t, "Get of nothing", err, vault.ErrNotFound)

	for _, data := range []string{"first", "", "\x00\xff binary \x00", string(make([]byte, 20_000))} {
		old, _ := s.Get(ctx, key("a"))
		put := mustPut(t, s, key("a"), data, old.Version)
		got, err := s.Get(ctx, key("a"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(put, got); diff != "" {
			t.Errorf("Get differs from what Put returned (-put +got):\n%s", diff)
		}
		if string(got.Data) != data || got.Key != key("a") || got.Data == nil {
			t.Errorf("Get = %v %d bytes, want %v %d bytes", got.Key, len(got.Data), key("a"), len(data))
		}
		if age := time.Since(got.Updated); age < -time.Minute || age > time.Minute {
			t.Errorf("Updated is %v, %v ago", got.Updated, age)
		}
	}
}

func testConflict(t *testing.T, s vault.Store) {
	ctx := t.Context()
	_, err := s.Put(ctx, key("a"), []byte("x"), 1)
	wantErr(t, "Put over nothing with a version", err, vault.ErrConflict)

	first := mustPut(t, s, key("a"), "one", 0)
	_, err = s.Put(ctx, key("a"), []byte("x"), 0)
	wantErr(t, "Put as absent over something", err, vault.ErrConflict)

	second := mustPut(t, s, key("a"), "two", first.Version)
	_, err = s.Put(ctx, key("a"), []byte("x"), first.Version)
	wantErr(t, "Put with an old version", err, vault.ErrConflict)

	got, err := s.Get(ctx, key("a"))
	if err != nil || string(got.Data) != "two" || got.Version != second.Version {
		t.Errorf("after the conflicts: %q version %d, %v; want two, %d", got.Data, got.Version, err, second.Version)
	}
}

func testVersions(t *testing.T, s vault.Store) {
	ctx := t.Context()
	seen := map[int64]bool{0: true}
	for range 3 {
		rec := mustPut(t, s, key("a"), "x", 0)
		next := mustPut(t, s, key("a"), "y", rec.Version)
		if next.Version <= rec.Version {
			t.Errorf("version %d after %d", next.Version, rec.Version)
		}
		if seen[rec.Version] || seen[next.Version] {
			t.Errorf("versions %d, %d were used before", rec.Version, next.Version)
		}
		seen[rec.Version], seen[next.Version] = true, true
		if err := s.Delete(ctx, key("a"), next.Version); err != nil {
			t.Fatal(err)
		}
	}
}

func testDelete(t *testing.T, s vault.Store) {
	ctx := t.Context()
	wantErr(t, "Delete of nothing", s.Delete(ctx, key("a"), 1), vault.ErrNotFound)
	rec := mustPut(t, s, key("a"), "x", 0)
	wantErr(t, "Delete of another version", s.Delete(ctx, key("a"), rec.Version+1), vault.ErrConflict)
	wantErr(t, "Delete without a version", s.Delete(ctx, key("a"), 0), vault.ErrConflict)
	if err := s.Delete(ctx, key("a"), rec.Version); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(ctx, key("a"))
	wantErr(t, "Get after Delete", err, vault.ErrNotFound)
}

func testTake(t *testing.T, s vault.Store) {
	ctx := t.Context()
	_, err := s.Take(ctx, key("a"))
	wantErr(t, "Take of nothing", err, vault.ErrNotFound)
	put := mustPut(t, s, key("a"), "x", 0)
	mustPut(t, s, key("b"), "y", 0)
	got, err := s.Take(ctx, key("a"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(put, got); diff != "" {
		t.Errorf("Take (-put +took):\n%s", diff)
	}
	_, err = s.Take(ctx, key("a"))
	wantErr(t, "second Take", err, vault.ErrNotFound)
	if _, err := s.Get(ctx, key("b")); err != nil {
		t.Errorf("the neighbour: %v", err)
	}
}

func testList(t *testing.T, s vault.Store) {
	ctx := t.Context()
	put := func(kind, principal, name string) vault.Record {
		return mustPut(t, s, vault.Key{Kind: kind, Principal: principal, Name: name}, name, 0)
	}
	// Order is by bytes, whatever the database's language is.
	b, up, a, uml := put("k", "p1", "b"), put("k", "p1", "B"), put("k", "p1", "a"), put("k", "p1", "ä")
	other := put("k", "p2", "a")
	put("k2", "p1", "a")
	tests := []struct {
		kind, principal string
		want            []vault.Record
	}{
		{"k", "p1", []vault.Record{up, a, b, uml}},
		{"k", "p2", []vault.Record{other}},
		{"k", "", []vault.Record{up, a, b, uml, other}},
		{"k", "p3", []vault.Record{}},
		{"none", "", []vault.Record{}},
	}
	for _, tt := range tests {
		got, err := s.List(ctx, tt.kind, tt.principal)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("List(%q, %q) (-want +got):\n%s", tt.kind, tt.principal, diff)
		}
		if tt.principal == "" {
			continue
		}
		versions, err := s.Versions(ctx, tt.kind, tt.principal)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{}
		for _, rec := range tt.want {
			want[rec.Name] = rec.Version
		}
		if diff := cmp.Diff(want, versions); diff != "" {
			t.Errorf("Versions(%q, %q) (-want +got):\n%s", tt.kind, tt.principal, diff)
		}
	}
}

func testKeysApart(t *testing.T, s vault.Store) {
	keys := []vault.Key{
		{Kind: "a", Principal: "b", Name: "c"},
		{Kind: "a", Principal: "c", Name: "b"},
		{Kind: "ab", Principal: "b", Name: "c"},
		{Kind: "a", Principal: "bb", Name: "c"},
		{Kind: "a", Principal: "b", Name: "C"},
		{Kind: "a", Principal: "b", Name: "c "},
		{Kind: "a", Principal: "b", Name: "c/b/c"},
		{Kind: "a", Principal: "b", Name: `'"%_\`},
		{Kind: "a", Principal: "b", Name: "https://ü.example/?q=1&r[]=2"},
	}
	for _, k := range keys {
		mustPut(t, s, k, k.String(), 0)
	}
	for _, k := range keys {
		if rec, err := s.Get(t.Context(), k); err != nil || string(rec.Data) != k.String() {
			t.Errorf("Get(%s) = %q, %v", k, rec.Data, err)
		}
	}
}

func testCopies(t *testing.T, s vault.Store) {
	ctx := t.Context()
	data := []byte("good")
	put, err := s.Put(ctx, key("a"), data, 0)
	if err != nil {
		t.Fatal(err)
	}
	clear(data)
	clear(put.Data)
	got, _ := s.Get(ctx, key("a"))
	clear(got.Data)
	list, _ := s.List(ctx, "thing", "")
	clear(list[0].Data)
	if got, err := s.Get(ctx, key("a")); err != nil || string(got.Data) != "good" {
		t.Errorf("Get = %q, %v; a caller's change reached the store", got.Data, err)
	}
}
