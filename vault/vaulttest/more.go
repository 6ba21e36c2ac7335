package vaulttest

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/usher-mcp/usher/vault"
)

func testInvalid(t *testing.T, s vault.Store) {
	ctx := t.Context()
	bad := []vault.Key{
		{},
		{Principal: "p", Name: "n"},
		{Kind: "k", Name: "n"},
		{Kind: "k", Principal: "p"},
		{Kind: "k", Principal: "p", Name: "nul\x00"},
		{Kind: "k", Principal: "p", Name: "\xff"},
		{Kind: "k", Principal: "p", Name: "new\nline"},
		{Kind: "k", Principal: "p", Name: strings.Repeat("n", 1025)},
	}
	for _, k := range bad {
		_, err := s.Get(ctx, k)
		wantErr(t, "Get", err, vault.ErrInvalid)
		_, err = s.Put(ctx, k, nil, 0)
		wantErr(t, "Put", err, vault.ErrInvalid)
		_, err = s.Take(ctx, k)
		wantErr(t, "Take", err, vault.ErrInvalid)
		_, err = s.Add(ctx, k, 1)
		wantErr(t, "Add", err, vault.ErrInvalid)
		wantErr(t, "Delete", s.Delete(ctx, k, 1), vault.ErrInvalid)
	}
	_, err := s.Lease(ctx, "", time.Second)
	wantErr(t, "Lease without a name", err, vault.ErrInvalid)
	_, err = s.Lease(ctx, "l", 0)
	wantErr(t, "Lease without a time", err, vault.ErrInvalid)
	_, err = s.Put(ctx, key("a"), make([]byte, vault.MaxData+1), 0)
	wantErr(t, "Put of too much", err, vault.ErrInvalid)
}

func testConcurrentUpdates(t *testing.T, s vault.Store) {
	const writers, each = 6, 8
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				_, err := vault.Update(t.Context(), s, key("n"), func(old []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(old))
					return strconv.AppendInt(nil, int64(n+1), 10), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, err := s.Get(t.Context(), key("n")); string(got.Data) != strconv.Itoa(writers*each) {
		t.Errorf("after %d increments: %s, %v", writers*each, got.Data, err)
	}
}

func testTakeOnce(t *testing.T, s vault.Store) {
	for range 5 {
		mustPut(t, s, key("once"), "x", 0)
		var took, missed atomic.Int32
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				switch _, err := s.Take(t.Context(), key("once")); {
				case err == nil:
					took.Add(1)
				case errors.Is(err, vault.ErrNotFound):
					missed.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took.Load() != 1 || missed.Load() != 5 {
			t.Errorf("%d took it and %d missed it, want 1 and 5", took.Load(), missed.Load())
		}
	}
}

func testCounters(t *testing.T, s vault.Store) {
	ctx := t.Context()
	k := vault.LocalKey("budget", "a")
	for _, step := range []struct{ delta, want int64 }{{0, 0}, {5, 5}, {-7, -2}, {2, 0}, {math.MaxInt64, math.MaxInt64}} {
		if got, err := s.Add(ctx, k, step.delta); err != nil || got != step.want {
			t.Fatalf("Add(%d) = %d, %v; want %d", step.delta, got, err, step.want)
		}
	}
	if _, err := s.Add(ctx, k, 1); err == nil {
		t.Error("a sum beyond int64 was accepted")
	}
	if _, err := s.Add(ctx, vault.LocalKey("budget", "b"), 1); err != nil {
		t.Fatal(err)
	}
	got, err := s.Counts(ctx, "budget", "")
	if err != nil {
		t.Fatal(err)
	}
	want := []vault.Count{{Key: k, Value: math.MaxInt64}, {Key: vault.LocalKey("budget", "b"), Value: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Counts (-want +got):\n%s", diff)
	}
	if err := s.Clear(ctx, k, vault.Key{}); !errors.Is(err, vault.ErrInvalid) {
		t.Errorf("Clear of nothing that can be: %v", err)
	}
	if got, err := s.Add(ctx, k, 0); got != math.MaxInt64 || err != nil {
		t.Errorf("%d, %v after a Clear that failed", got, err)
	}
	for range 2 {
		if err := s.Clear(ctx, k, vault.LocalKey("budget", "b")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Counts(ctx, "budget", ""); len(got) != 0 || err != nil {
		t.Errorf("Counts after Clear = %v, %v", got, err)
	}
	if got, err := s.Add(ctx, k, 3); got != 3 || err != nil {
		t.Errorf("Add after Clear = %d, %v; want 3", got, err)
	}
	if _, err := s.Get(ctx, k); !errors.Is(err, vault.ErrNotFound) {
		t.Errorf("a counter must not be a record: %v", err)
	}
	testAddAll(t, s, k)
}

// testAddAll is for a store in which k is 3.
func testAddAll(t *testing.T, s vault.Store, k vault.Key) {
	ctx := t.Context()
	plus := func(k vault.Key, delta int64) vault.Count { return vault.Count{Key: k, Value: delta} }
	z, a := vault.LocalKey("budget", "z"), vault.LocalKey("budget", "A")
	for _, want := range [][]int64{{7, 8, -1}, {14, 13, -2}} {
		got, err := s.AddAll(ctx, plus(z, 7), plus(k, 5), plus(a, -1))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("AddAll: %v, (-want +got):\n%s", err, diff)
		}
	}
	for name, deltas := range map[string][]vault.Count{
		"twice": {plus(k, 1), plus(k, 1)}, "no key": {plus(k, 1), {}}, "too much": {plus(k, 1), plus(z, math.MaxInt64)},
	} {
		if got, err := s.AddAll(ctx, deltas...); !errors.Is(err, vault.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := s.Add(ctx, k, 0); got != 13 || err != nil {
		t.Errorf("%d, %v after additions that failed; want 13", got, err)
	}
	if got, err := s.AddAll(ctx); len(got) != 0 || err != nil {
		t.Errorf("nothing added: %v, %v", got, err)
	}
}

func testCountersAtOnce(t *testing.T, s vault.Store) {
	const writers, each = 6, 10
	k := vault.LocalKey("budget", "a")
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				n, err := s.Add(t.Context(), k, 1)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				if seen[n] {
					t.Errorf("the value %d was handed out twice", n)
				}
				seen[n] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n, err := s.Add(t.Context(), k, 0); n != writers*each {
		t.Errorf("sum %d, %v; want %d", n, err, writers*each)
	}
}

func testAudit(t *testing.T, s vault.Store) {
	ctx := t.Context()
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	entry := func(principal, target string, days int) vault.AuditEntry {
		return vault.AuditEntry{
			At: day.AddDate(0, 0, days), Principal: principal, Action: "call", Target: target,
			Outcome: "ok", Detail: []byte(`{"a":1}`),
		}
	}
	all := []vault.AuditEntry{entry("p1", "t0", 0), entry("p2", "t1", 1), entry("p1", "t2", 2), entry("p1", "t3", 3)}
	if err := s.Append(ctx, all[:3]...); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(ctx, all[3]); err != nil {
		t.Fatal(err)
	}
	got := mustAudit(t, s, vault.AuditQuery{})
	if diff := cmp.Diff(all, got, cmpopts.IgnoreFields(vault.AuditEntry{}, "Seq")); diff != "" {
		t.Fatalf("Audit (-want +got):\n%s", diff)
	}
	for i := 1; i < len(got); i++ {
		if got[i].Seq <= got[i-1].Seq {
			t.Errorf("Seq %d after %d", got[i].Seq, got[i-1].Seq)
		}
	}
	check := func(what string, q vault.AuditQuery, want ...vault.AuditEntry) {
		t.Helper()
		if diff := cmp.Diff(want, mustAudit(t, s, q), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("one principal", vault.AuditQuery{Principal: "p2"}, got[1])
	check("newest two", vault.AuditQuery{Limit: 2}, got[2], got[3])
	check("oldest two", vault.AuditQuery{Limit: 2, Oldest: true}, got[0], got[1])
	check("the page after them", vault.AuditQuery{After: got[1].Seq, Limit: 1, Oldest: true}, got[2])
	check("after", vault.AuditQuery{After: got[2].Seq}, got[3])
	check("after the last", vault.AuditQuery{After: got[3].Seq})

	if n, err := s.TrimAudit(ctx, day.AddDate(0, 0, 2)); n != 2 || err != nil {
		t.Errorf("TrimAudit = %d, %v; want 2", n, err)
	}
	check("after trimming", vault.AuditQuery{}, got[2], got[3])
}

func testAuditForeign(t *testing.T, s vault.Store) {
	if err := s.Append(t.Context()); err != nil {
		t.Errorf("Append of nothing: %v", err)
	}
	err := s.Append(t.Context(), vault.AuditEntry{Principal: "p", Action: "call", Target: "a\x00\xffb"})
	if err != nil {
		t.Fatal(err)
	}
	got := mustAudit(t, s, vault.AuditQuery{})
	if len(got) != 1 || got[0].Target != "a\uFFFD\uFFFDb" || time.Since(got[0].At).Abs() > time.Minute {
		t.Errorf("Audit = %+v; want the target made printable and the store's time", got)
	}
}

func mustAudit(t *testing.T, s vault.Store, q vault.AuditQuery) []vault.AuditEntry {
	t.Helper()
	entries, err := s.Audit(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func testWatch(t *testing.T, s vault.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	mustPut(t, s, key("before"), "x", 0)
	sub, err := s.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	a := mustPut(t, s, key("a"), "1", 0)
	a2 := mustPut(t, s, key("a"), "2", a.Version)
	if _, err := s.Take(ctx, key("a")); err != nil {
		t.Fatal(err)
	}
	// Hints may come twice or be folded together, but the last word on a key
	// is its present state and nothing comes out of nothing.
	for {
		c, _, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("never told that a is gone: %v", err)
		}
		if c.Key != key("a") || (c.Version != 0 && c.Version != a.Version && c.Version != a2.Version) {
			t.Fatalf("told of %+v, which did not happen", c)
		}
		if c.Version == 0 {
			return
		}
	}
}

func testReady(t *testing.T, s vault.Store) {
	for range 2 {
		if err := s.Ready(t.Context(), 8192); err != nil {
			t.Error(err)
		}
	}
}

func testCancelled(t *testing.T, s vault.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Put(ctx, key("a"), []byte("x"), 0)
	wantErr(t, "Put", err, context.Canceled)
	_, err = s.Get(ctx, key("a"))
	wantErr(t, "Get", err, context.Canceled)
	_, err = s.Get(t.Context(), key("a"))
	wantErr(t, "Get after a cancelled Put", err, vault.ErrNotFound)
}

func testClosed(t *testing.T, s vault.Store) {
	ctx := t.Context()
	sub, err := s.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range sub.All(ctx) {
		t.Error("a change after Close")
	}
	_, err = s.Get(ctx, key("a"))
	wantErr(t, "Get", err, vault.ErrClosed)
	_, err = s.Versions(ctx, "thing", vault.Local)
	wantErr(t, "Versions", err, vault.ErrClosed)
	_, err = s.Put(ctx, key("a"), nil, 0)
	wantErr(t, "Put", err, vault.ErrClosed)
	_, err = s.Lease(ctx, "l", time.Second)
	wantErr(t, "Lease", err, vault.ErrClosed)
	_, err = s.Watch(ctx)
	wantErr(t, "Watch", err, vault.ErrClosed)
	wantErr(t, "Append", s.Append(ctx, vault.AuditEntry{}), vault.ErrClosed)
}
