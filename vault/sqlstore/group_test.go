package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/vault"
)

// Writes that share a transaction each have their own outcome, also when one of them
// fails and when one is given up.
func TestWritesTogether(t *testing.T) {
	s := openPath(t, filepath.Join(t.TempDir(), "state", "usher.db"))
	ctx := t.Context()
	taken := vault.LocalKey("shared", "taken")
	if _, err := s.Put(ctx, taken, []byte("first"), 0); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(ctx)
	leave()
	<-s.turn // so that all of them wait
	const n = 20
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			switch i {
			case 3:
				_, errs[i] = s.Put(ctx, taken, []byte("second"), 0)
			case 4:
				_, errs[i] = s.Put(gone, vault.LocalKey("shared", "gone"), nil, 0)
			default:
				_, errs[i] = s.Put(ctx, vault.LocalKey("shared", fmt.Sprint(i)), []byte("x"), 0)
			}
		})
	}
	for s.group.size() < n-1 { // one gave up
		runtime.Gosched()
	}
	s.turn <- struct{}{}
	wg.Wait()
	for i, err := range errs {
		want := map[int]error{3: vault.ErrConflict, 4: context.Canceled}[i]
		if !errors.Is(err, want) {
			t.Errorf("write %d: %v, want %v", i, err, want)
		}
	}
	recs, err := s.List(ctx, "shared", vault.Local)
	if err != nil || len(recs) != n-1 { // all but the one that gave up; "taken" is there once
		t.Errorf("%d records, want %d; %v", len(recs), n-1, err)
	}
	seen := map[int64]bool{}
	for _, r := range recs {
		if seen[r.Version] {
			t.Errorf("version %d was given twice", r.Version)
		}
		seen[r.Version] = true
	}
}

// What may be lost is written without waiting for the disk, everything else by a
// connection that waits.
func TestCare(t *testing.T) {
	s := openPath(t, filepath.Join(t.TempDir(), "state", "usher.db"))
	s.db.SetMaxOpenConns(1)
	level := func(q querier) (n int) {
		t.Helper()
		if err := q.QueryRowContext(t.Context(), `PRAGMA synchronous`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, tt := range []struct {
		c    care
		want int
	}{{careFull, 2}, {careLittle, 1}, {careCount, 2}, {careOf(vault.KindEra), 1}, {careOf(vault.KindCatalog), 1}, {careOf(vault.KindPin), 2}, {careOf(vault.KindGrant), 2}} {
		err := s.write(t.Context(), tt.c, "test", func(tx querier) error {
			if got := level(tx); got != tt.want {
				t.Errorf("care %d is written at level %d, want %d", tt.c, got, tt.want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := level(s.db); got != 2 {
			t.Errorf("care %d leaves the connection at level %d", tt.c, got)
		}
	}
}

// A process that ends with Close leaves a small log behind, unless it holds something
// that somebody who copies the file would miss. The next one sees everything.
func TestLeavesTheLog(t *testing.T) {
	key := vault.LocalKey("count", "a")
	for _, tt := range []struct {
		name  string
		exits bool
		write func(s *Store) error
		want  bool
	}{
		{"counter", true, func(*Store) error { return nil }, true},
		{"lives on", false, func(*Store) error { return nil }, false},
		{"era", true, func(s *Store) error {
			_, err := s.Put(t.Context(), vault.LocalKey(vault.KindEra, "e"), nil, 0)
			return err
		}, true},
		{"login", true, func(s *Store) error {
			_, err := s.Put(t.Context(), vault.LocalKey(vault.KindGrant, "g"), nil, 0)
			return err
		}, false},
		{"much", true, func(s *Store) error {
			_, err := s.Put(t.Context(), vault.LocalKey(vault.KindCatalog, "c"), make([]byte, 2*maxLeft), 0)
			return err
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "usher.db")
			made, err := Open(t.Context(), path, nil)
			if err != nil || made.Close() != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), path, &Options{Exits: tt.exits})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.db.Close() }() // as the end of the process does
			if _, err := s.Add(t.Context(), key, 7); err != nil {
				t.Fatal(err)
			}
			if err := tt.write(s); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path + "-wal"); (err == nil) != tt.want {
				t.Errorf("the log is left: %v, want %v", err == nil, tt.want)
			}
			next, err := Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := next.Add(t.Context(), key, 0); n != 7 || err != nil {
				t.Errorf("the next one counts %d, %v", n, err)
			}
			if err := next.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
