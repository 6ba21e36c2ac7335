package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/vault"
)

// everything is all that a store tells.
type everything struct {
	Records []vault.Record
	Counts  []vault.Count
	Audit   []vault.AuditEntry
}

func readEverything(t *testing.T, s *Store) everything {
	t.Helper()
	var all everything
	kinds, err := s.Kinds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range append(kinds, "counter") {
		recs, err := s.List(t.Context(), kind, "")
		if err != nil {
			t.Fatal(err)
		}
		all.Records = append(all.Records, recs...)
		counts, err := s.Counts(t.Context(), kind, "")
		if err != nil {
			t.Fatal(err)
		}
		all.Counts = append(all.Counts, counts...)
	}
	if all.Audit, err = s.Audit(t.Context(), vault.AuditQuery{Limit: 1000}); err != nil {
		t.Fatal(err)
	}
	return all
}

func furnish(t *testing.T, s *Store) {
	t.Helper()
	for i := range 20 {
		key := vault.Key{Kind: fmt.Sprint("kind ", i%3), Principal: []string{"local", "älice"}[i%2], Name: fmt.Sprint("Name ", i, " \u2028")}
		data := make([]byte, i*20)
		for j := range data {
			data[j] = byte(i * j)
		}
		if _, err := s.Put(t.Context(), key, data, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(t.Context(), vault.LocalKey("counter", key.Name), int64(-i)); err != nil {
			t.Fatal(err)
		}
		err := s.Append(t.Context(), vault.AuditEntry{Action: "call", Target: key.Name, Detail: data, At: time.UnixMilli(int64(i))})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.TrimAudit(t.Context(), time.UnixMilli(5)); err != nil {
		t.Fatal(err)
	}
}

// Everything arrives, in every direction, as often as it is asked for.
func TestCopy(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	sources := map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return tempStore(t) },
		"PostgreSQL": postgresSchema,
	}
	for from, openFrom := range sources {
		for to, openTo := range sources {
			t.Run(from+" to "+to, func(t *testing.T) {
				src, dst := openPath(t, openFrom(t)), openPath(t, openTo(t))
				furnish(t, src)
				for range 2 {
					done, err := Copy(t.Context(), src, dst)
					if err != nil || done.Records != 20 || done.Counters != 20 || done.Audit != 15 {
						t.Fatalf("Copy = %+v, %v", done, err)
					}
					if diff := cmp.Diff(readEverything(t, src), readEverything(t, dst)); diff != "" {
						t.Fatalf("(-source +copy)\n%s", diff)
					}
				}
				last := mustPut(t, src, "newer", "x")
				if _, err := Copy(t.Context(), src, dst); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(readEverything(t, src), readEverything(t, dst)); diff != "" {
					t.Fatalf("(-source +copy)\n%s", diff)
				}
				goesOn(t, dst, last)
				if _, err := Copy(t.Context(), src, dst); !errors.Is(err, vault.ErrConflict) {
					t.Errorf("over a store that went on: %v, want ErrConflict", err)
				}
			})
		}
	}
}

// goesOn checks that a copied store draws new numbers above the old ones.
func goesOn(t *testing.T, s *Store, last vault.Record) {
	t.Helper()
	if rec := mustPut(t, s, "own", "y"); rec.Version <= last.Version {
		t.Errorf("version %d after %d", rec.Version, last.Version)
	}
	if err := s.Append(t.Context(), vault.AuditEntry{Action: "new"}); err != nil {
		t.Fatal(err)
	}
	trail, err := s.Audit(t.Context(), vault.AuditQuery{})
	if err != nil || trail[len(trail)-1].Action != "new" || !slices.IsSortedFunc(trail, func(a, b vault.AuditEntry) int { return int(a.Seq - b.Seq) }) {
		t.Errorf("the audit trail goes on with %+v, %v", trail[len(trail)-1], err)
	}
}

// A damaged record stays behind and is told of; the others arrive.
func TestCopyDamaged(t *testing.T) {
	src, dst := openPath(t, tempStore(t)), openPath(t, tempStore(t))
	good, bad := mustPut(t, src, "good", "x"), mustPut(t, src, "bad", "y")
	damage(t, src, `UPDATE usher_records SET data = x'00' WHERE name = 'bad'`)
	done, err := Copy(t.Context(), src, dst)
	if err != nil || done.Records != 1 || len(done.Damaged) != 1 || done.Damaged[0] != bad.Key {
		t.Fatalf("Copy = %+v, %v", done, err)
	}
	if rec, err := dst.Get(t.Context(), good.Key); err != nil || rec.Version != good.Version {
		t.Errorf("%+v, %v", rec, err)
	}
}
