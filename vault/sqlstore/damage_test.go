package sqlstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
)

// Any flipped byte of a record is found, sets only that record aside, and
// leaves its key free for a new one.
func TestDamagedRecord(t *testing.T) {
	s := openPath(t, tempStore(t))
	ctx := t.Context()
	good := mustPut(t, s, "good", "keep me")
	original := []byte("token")
	reads := map[string]func(key vault.Key) error{
		"get":  func(key vault.Key) error { _, err := s.Get(ctx, key); return err },
		"take": func(key vault.Key) error { _, err := s.Take(ctx, key); return err },
		"list": func(key vault.Key) error {
			recs, err := s.List(ctx, key.Kind, "")
			if len(recs) != 1 || string(recs[0].Data) != "keep me" {
				t.Errorf("List = %v; want the good record", recs)
			}
			return err
		},
	}
	damages := 0
	for name, read := range reads {
		for i := range original {
			rec := mustPut(t, s, "bad", string(original))
			flipped := bytes.Clone(original)
			flipped[i] ^= 1 << (i % 8)
			damage(t, s, `UPDATE usher_records SET data = ? WHERE name = 'bad'`, flipped)
			damages++
			err := read(rec.Key)
			if c, ok := errors.AsType[*vault.CorruptError](err); !ok || c.Key != rec.Key {
				t.Fatalf("%s with byte %d flipped: %v, want a CorruptError for %s", name, i, err, rec.Key)
			}
			if _, err := s.Get(ctx, rec.Key); !errors.Is(err, vault.ErrNotFound) {
				t.Fatalf("%s: afterwards %v, want the record set aside", name, err)
			}
		}
	}
	if rec, err := s.Get(ctx, good.Key); err != nil || string(rec.Data) != "keep me" {
		t.Errorf("the good record: %q, %v", rec.Data, err)
	}
	kept, err := s.Quarantined(ctx)
	if err != nil || len(kept) != damages {
		t.Fatalf("%d records in quarantine, %v; want %d", len(kept), err, damages)
	}
	if q := kept[0]; q.Name != "bad" || len(q.Data) != len(original) || q.Reason == "" || q.At.IsZero() {
		t.Errorf("quarantined %+v", q)
	}
}

// Everything a record consists of is under its sum.
func TestDamagedParts(t *testing.T) {
	s := openPath(t, tempStore(t))
	for _, part := range []string{`version = version + 1`, `updated = updated - 1`, `sum = sum + 1`, `name = 'other'`, `data = x''`} {
		t.Run(part, func(t *testing.T) {
			mustPut(t, s, "a", "x")
			damage(t, s, `UPDATE usher_records SET `+part)
			recs, err := s.List(t.Context(), "test", "")
			if !errors.Is(err, vault.ErrCorrupt) || len(recs) != 0 {
				t.Errorf("List = %v, %v; want ErrCorrupt", recs, err)
			}
			if recs, err := s.List(t.Context(), "test", ""); err != nil || len(recs) != 0 {
				t.Errorf("second List = %v, %v; want the record set aside", recs, err)
			}
		})
	}
}

func damage(t *testing.T, s *Store, statement string, args ...any) {
	t.Helper()
	if _, err := s.db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// filled returns a closed store's file and what is in it.
func filled(t *testing.T) (path string, content map[vault.Key]string) {
	t.Helper()
	path, content = tempStore(t), map[vault.Key]string{}
	s := openPath(t, path)
	for i := range 12 {
		rec := mustPut(t, s, fmt.Sprintf("record %d", i), strings.Repeat(fmt.Sprint(i), 100+200*i))
		content[rec.Key] = string(rec.Data)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// A flipped byte anywhere in the file never crashes anything and is never
// handed out as data.
func TestFlippedFile(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	path, content := filled(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stride := 997
	if need.Proof() {
		stride = 41
	}
	noticed := 0
	for at := 0; at < len(whole); at += stride {
		spoiled := bytes.Clone(whole)
		spoiled[at] ^= 1 << (at % 8)
		copied := filepath.Join(t.TempDir(), "usher.db")
		if err := os.WriteFile(copied, spoiled, fileMode); err != nil {
			t.Fatal(err)
		}
		if readAll(t, copied, at, content) {
			noticed++
		}
	}
	if noticed == 0 {
		t.Error("no damage was ever noticed; the test tests nothing")
	}
	t.Logf("%d of %d flips were noticed", noticed, len(whole)/stride+1)
}

// readAll reports whether the damage was noticed at all: much of a file is
// empty, where a flip changes nothing.
func readAll(t *testing.T, path string, at int, content map[vault.Key]string) (noticed bool) {
	t.Helper()
	s, err := Open(t.Context(), path, nil)
	if err != nil {
		return true
	}
	defer func() { _ = s.Close() }() // damaged on purpose
	for key, want := range content {
		rec, err := s.Get(t.Context(), key)
		switch {
		case err == nil && string(rec.Data) != want:
			t.Errorf("byte %d: %s came back with wrong data", at, key)
		case err == nil:
		case errors.Is(err, vault.ErrCorrupt), errors.Is(err, vault.ErrNotFound):
			noticed = true
		default:
			t.Errorf("byte %d: %s: %v, want ErrCorrupt", at, key, err)
		}
	}
	return noticed
}

// Damaged pages: a copy is kept, once, and nothing is written any more.
func TestDamagedPages(t *testing.T) {
	path, content := filled(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for i := 2 * page; i < len(whole); i++ { // all but the schema
		whole[i] = 0xAA
	}
	if err := os.WriteFile(path, whole, fileMode); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := openPath(t, path)
		for key := range content {
			_, err := s.Get(t.Context(), key)
			c, ok := errors.AsType[*vault.CorruptError](err)
			if !ok || c.Path != path || c.Copy == "" || c.Hint() != "repair the store" {
				t.Fatalf("Get = %v; want a CorruptError with the file, the copy and the way out", err)
			}
			if kept, err := os.ReadFile(c.Copy); err != nil || !bytes.Equal(kept, whole) {
				t.Fatalf("the copy %s differs from the file, %v", c.Copy, err)
			}
		}
		if _, err := s.Put(t.Context(), vault.LocalKey("test", "new"), nil, 0); !errors.Is(err, vault.ErrCorrupt) {
			t.Errorf("Put into a damaged file: %v, want ErrCorrupt", err)
		}
	}
	if copies, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.corrupt-*Z")); len(copies) != 1 {
		t.Errorf("copies %q, want one", copies)
	}
}

// A file that is no database is refused and stays as it is.
func TestNoDatabase(t *testing.T) {
	path := tempStore(t)
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		t.Fatal(err)
	}
	junk := bytes.Repeat([]byte("not a database\n"), 1000)
	if err := os.WriteFile(path, junk, fileMode); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path, nil)
	c, ok := errors.AsType[*vault.CorruptError](err)
	if !ok || c.Copy == "" {
		t.Fatalf("Open = %v; want a CorruptError with a copy", err)
	}
	for _, file := range []string{path, c.Copy} {
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, junk) {
			t.Errorf("%s was changed, %v", file, err)
		}
	}
}
