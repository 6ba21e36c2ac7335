package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault"
)

func mustPut(t testing.TB, s vault.Store, name, data string) vault.Record {
	t.Helper()
	rec, err := s.Put(t.Context(), vault.LocalKey("test", name), []byte(data), 0)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestFilesArePrivate(t *testing.T) {
	path := tempStore(t)
	s := openPath(t, path)
	mustPut(t, s, "a", "x")
	modes := map[string]fs.FileMode{filepath.Dir(path): dirMode, path: fileMode, path + "-wal": fileMode, path + "-shm": fileMode}
	for file, want := range modes {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", file, info.Mode().Perm(), want)
		}
	}
}

// childReadOnly is the job of TestReadOnlyDirectory.
func childReadOnly(ctx context.Context) int {
	if err := dropPrivileges(); err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	_, err := Open(ctx, os.Getenv(childStore), nil)
	if errors.Is(err, vault.ErrUnavailable) {
		fmt.Fprintln(os.Stdout, "unavailable:", err)
		return 0
	}
	fmt.Fprintln(os.Stdout, "opened:", err)
	return 0
}

// A full disk fails the write, keeps the old value, and is noticed by Ready
// before anything is spent.
func TestFullDisk(t *testing.T) {
	s := openPath(t, tempStore(t))
	old := mustPut(t, s, "a", "old")
	big := make([]byte, 1<<20)
	limitPages(t, s, 1)
	_, err := s.Put(t.Context(), old.Key, big, old.Version)
	if !errors.Is(err, vault.ErrUnavailable) || !strings.Contains(err.Error(), "free space") {
		t.Errorf("Put on a full disk: %v, want ErrUnavailable with a hint", err)
	}
	if err := s.Ready(t.Context(), len(big)); !errors.Is(err, vault.ErrUnavailable) {
		t.Errorf("Ready on a full disk: %v, want ErrUnavailable", err)
	}
	if rec, err := s.Get(t.Context(), old.Key); err != nil || string(rec.Data) != "old" {
		t.Errorf("Get = %q, %v; want the old value", rec.Data, err)
	}
	limitPages(t, s, 100_000)
	if err := s.Ready(t.Context(), len(big)); err != nil {
		t.Error(err)
	}
	if _, err := s.Put(t.Context(), old.Key, big, old.Version); err != nil {
		t.Errorf("Put with room again: %v", err)
	}
}

// limitPages makes the file as good as full, or roomy again.
func limitPages(t *testing.T, s *Store, pages int) {
	t.Helper()
	s.db.SetMaxOpenConns(1) // the limit belongs to a connection
	if _, err := s.db.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
		t.Fatal(err)
	}
}

// A writer that never ends is waited for as long as was asked, no longer.
func TestBusy(t *testing.T) {
	path := tempStore(t)
	blocker := openPath(t, path)
	tx, err := blocker.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // it did nothing
	impatient, err := Open(t.Context(), path, &Options{Busy: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = impatient.Close() }() // nothing was written
	key := vault.LocalKey("test", "a")
	if _, err := impatient.Put(t.Context(), key, nil, 0); !errors.Is(err, vault.ErrUnavailable) {
		t.Errorf("Put = %v, want ErrUnavailable", err)
	}
	if _, err := impatient.Get(t.Context(), key); !errors.Is(err, vault.ErrNotFound) {
		t.Errorf("a reader waits for nobody: %v", err)
	}
	patient := openPath(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := patient.Put(ctx, key, nil, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put = %v, want the caller's deadline", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("a cancelled Put came back after %v", took)
	}
}

func TestForeignDatabaseIsRefused(t *testing.T) {
	path := tempStore(t)
	if err := prepareFile(path); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", sqliteDSN(path))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE theirs (x)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, nil); !errors.Is(err, vault.ErrInvalid) || !strings.Contains(err.Error(), path) {
		t.Errorf("Open = %v, want ErrInvalid and the file", err)
	}
}

func BenchmarkOpenGet(b *testing.B) {
	path := tempStore(b)
	s := openPath(b, path)
	rec := mustPut(b, s, "a", "x")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(b.Context(), path, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Get(b.Context(), rec.Key); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	s := openPath(b, tempStore(b))
	rec := mustPut(b, s, "a", "x")
	for b.Loop() {
		var err error
		if rec, err = s.Put(b.Context(), rec.Key, rec.Data, rec.Version); err != nil {
			b.Fatal(err)
		}
	}
}
