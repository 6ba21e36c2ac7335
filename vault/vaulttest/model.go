package vaulttest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/vault"
)

// testModel runs random operations against the store and against plain maps;
// the two must never disagree. Every run has a principal of its own, so that
// one store serves all runs.
func testModel(t *testing.T, s vault.Store) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := &model{
			t: t, s: s, principal: fmt.Sprintf("run%d", run),
			records: map[string]vault.Record{}, counters: map[string]int64{},
			past: []int64{0}, leases: map[string]vault.Lease{}, lost: []vault.Lease{{Name: "none"}},
		}
		steps := map[string]func(*rapid.T){
			"put": m.put, "fenced": m.putFenced, "delete": m.delete, "take": m.take,
			"add": m.add, "lease": m.lease, "release": m.release, "check": m.check,
		}
		names := slices.Sorted(maps.Keys(steps))
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 1, modelSteps()).Draw(rt, "steps") {
			steps[name](rt)
		}
		m.check(rt)
	})
}

// modelSteps is how many operations a run has at most; every one that writes
// waits for the disk, so the long form is asked for by USHER_PROOF.
func modelSteps() int {
	if os.Getenv("USHER_PROOF") != "" {
		return 100
	}
	return 12
}

type model struct {
	t         *testing.T
	s         vault.Store
	principal string
	records   map[string]vault.Record
	counters  map[string]int64
	past      []int64 // versions that were once right
	leases    map[string]vault.Lease
	lost      []vault.Lease
}

func (m *model) key(rt *rapid.T) vault.Key {
	name := rapid.SampledFrom([]string{"a", "b", "ü"}).Draw(rt, "name")
	return vault.Key{Kind: "model", Principal: m.principal, Name: name}
}

// version draws the right version or one of the wrong ones.
func (m *model) version(rt *rapid.T, k vault.Key) int64 {
	if rapid.IntRange(0, 2).Draw(rt, "stale") == 0 {
		return rapid.SampledFrom(m.past).Draw(rt, "version")
	}
	return m.records[k.Name].Version
}

func (m *model) put(rt *rapid.T) {
	k := m.key(rt)
	v := m.version(rt, k)
	data := rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(rt, "data")
	rec, err := m.s.Put(m.t.Context(), k, data, v)
	m.wrote(rt, rec, err, k, data, v, nil)
}

func (m *model) putFenced(rt *rapid.T) {
	k := m.key(rt)
	v := m.version(rt, k)
	data := rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(rt, "data")
	choices := m.lost
	for _, name := range leaseNames() {
		if l, ok := m.leases[name]; ok {
			choices = append(choices[:len(choices):len(choices)], l)
		}
	}
	l := rapid.SampledFrom(choices).Draw(rt, "lease")
	var fenced error
	if !m.holds(l) {
		fenced = vault.ErrFenced
	}
	rec, err := m.s.PutFenced(m.t.Context(), k, data, v, l)
	m.wrote(rt, rec, err, k, data, v, fenced)
}

func (m *model) wrote(rt *rapid.T, rec vault.Record, err error, k vault.Key, data []byte, v int64, want error) {
	old := m.records[k.Name]
	if want == nil && old.Version != v {
		want = vault.ErrConflict
	}
	if !errors.Is(err, want) {
		rt.Fatalf("put %s if %d over %d: %v, want %v", k, v, old.Version, err, want)
	}
	if err != nil {
		return
	}
	if rec.Version <= old.Version || string(rec.Data) != string(data) || rec.Key != k {
		rt.Fatalf("put returned %+v over version %d", rec, old.Version)
	}
	m.records[k.Name] = rec
	m.past = append(m.past, rec.Version)
}

func (m *model) delete(rt *rapid.T) {
	k := m.key(rt)
	v := m.version(rt, k)
	var want error
	old, ok := m.records[k.Name]
	switch {
	case !ok:
		want = vault.ErrNotFound
	case old.Version != v:
		want = vault.ErrConflict
	default:
		delete(m.records, k.Name)
	}
	if err := m.s.Delete(m.t.Context(), k, v); !errors.Is(err, want) {
		rt.Fatalf("delete %s if %d: %v, want %v", k, v, err, want)
	}
}

func (m *model) take(rt *rapid.T) {
	k := m.key(rt)
	old, ok := m.records[k.Name]
	rec, err := m.s.Take(m.t.Context(), k)
	if !ok {
		if !errors.Is(err, vault.ErrNotFound) {
			rt.Fatalf("take of nothing: %v", err)
		}
		return
	}
	if err != nil || rec.Version != old.Version {
		rt.Fatalf("take = %+v, %v; want %+v", rec, err, old)
	}
	delete(m.records, k.Name)
}

func (m *model) add(rt *rapid.T) {
	k := m.key(rt)
	delta := rapid.Int64Range(-5, 5).Draw(rt, "delta")
	m.counters[k.Name] += delta
	if got, err := m.s.Add(m.t.Context(), k, delta); err != nil || got != m.counters[k.Name] {
		rt.Fatalf("add %d = %d, %v; want %d", delta, got, err, m.counters[k.Name])
	}
}

func leaseNames() []string { return []string{"x", "y"} }

func (m *model) lease(rt *rapid.T) {
	name := rapid.SampledFrom(leaseNames()).Draw(rt, "lease")
	_, held := m.leases[name]
	l, err := m.s.Lease(m.t.Context(), m.principal+name, long)
	if held != errors.Is(err, vault.ErrHeld) || held != (err != nil) {
		rt.Fatalf("lease %s: %v, held: %v", name, err, held)
	}
	if err == nil {
		m.leases[name] = l
	}
}

func (m *model) release(rt *rapid.T) {
	name := rapid.SampledFrom(leaseNames()).Draw(rt, "lease")
	l, held := m.leases[name]
	if !held {
		return
	}
	if err := m.s.Release(m.t.Context(), l); err != nil {
		rt.Fatal(err)
	}
	delete(m.leases, name)
	m.lost = append(m.lost, l)
}

func (m *model) check(rt *rapid.T) {
	recs, err := m.s.List(m.t.Context(), "model", m.principal)
	if err != nil {
		rt.Fatal(err)
	}
	if len(recs) != len(m.records) {
		rt.Fatalf("%d records, want %d", len(recs), len(m.records))
	}
	versions, err := m.s.Versions(m.t.Context(), "model", m.principal)
	if err != nil || len(versions) != len(recs) {
		rt.Fatalf("versions %v, %v; want %d", versions, err, len(recs))
	}
	for _, rec := range recs {
		if versions[rec.Name] != rec.Version {
			rt.Fatalf("version %d of %s, want %d", versions[rec.Name], rec.Name, rec.Version)
		}
		want := m.records[rec.Name]
		if rec.Version != want.Version || string(rec.Data) != string(want.Data) || !rec.Updated.Equal(want.Updated) {
			rt.Fatalf("record %+v, want %+v", rec, want)
		}
	}
}

func (m *model) holds(l vault.Lease) bool {
	for _, held := range m.leases {
		if held == l {
			return true
		}
	}
	return false
}
