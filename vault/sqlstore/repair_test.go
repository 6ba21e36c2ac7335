package sqlstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
)

// library is a store of many pages and what its records hold.
func library(t *testing.T, records int) (path string, content map[vault.Key]string) {
	t.Helper()
	path, content = tempStore(t), map[vault.Key]string{}
	s := openPath(t, path)
	for i := range records {
		key := vault.LocalKey([]string{vault.KindGrant, vault.KindSecret, vault.KindPin}[i%3], fmt.Sprintf("record %03d", i))
		data := strings.Repeat(fmt.Sprint(i), 100+20*(i%7))
		if _, err := s.Put(t.Context(), key, []byte(data), 0); err != nil {
			t.Fatal(err)
		}
		content[key] = data
	}
	if _, err := s.Add(t.Context(), vault.LocalKey("budget", "b"), 42); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), vault.AuditEntry{Action: "login", Target: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// survivors reads what is left of content; nothing may be wrong.
func survivors(t *testing.T, path string, content map[vault.Key]string) int {
	t.Helper()
	s := openPath(t, path)
	n := 0
	for key, want := range content {
		rec, err := s.Get(t.Context(), key)
		switch {
		case err == nil && string(rec.Data) == want:
			n++
		case !errors.Is(err, vault.ErrNotFound):
			t.Errorf("%s: %.20q, %v", key, rec.Data, err)
		}
	}
	return n
}

const pageSize = 4096

// One damaged page costs the records on it and no others, whichever page it is.
func TestRepairPages(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	path, content := library(t, 36)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	repaired := 0
	for at := pageSize; at < len(whole); at += pageSize {
		spoiled := bytes.Clone(whole)
		kind, cells := spoiled[at], int(binary.BigEndian.Uint16(spoiled[at+3:]))
		copy(spoiled[at:at+pageSize], bytes.Repeat([]byte{0xAA}, pageSize))
		copied := filepath.Join(t.TempDir(), "usher.db")
		if err := os.WriteFile(copied, spoiled, fileMode); err != nil {
			t.Fatal(err)
		}
		done, err := Repair(t.Context(), copied)
		const leaf = 0x0A // of a table that is its own index
		if err != nil {
			if kind == leaf && cells > 0 || !errors.Is(err, vault.ErrCorrupt) {
				t.Errorf("page %d of kind %#x: %v", at/pageSize, kind, err)
			}
			if now, err := os.ReadFile(copied); err != nil || !bytes.Equal(now, spoiled) {
				t.Errorf("page %d: the file was changed though it could not be repaired, %v", at/pageSize, err)
			}
			continue
		}
		if kept, err := os.ReadFile(done.Copy); err != nil || !bytes.Equal(kept, spoiled) {
			t.Errorf("page %d: the copy differs, %v", at/pageSize, err)
		}
		repaired++
		if left := survivors(t, copied, content); kind == leaf && left < len(content)-cells || left != done.Records {
			t.Errorf("page %d of kind %#x with %d cells: %d of %d records left, %d told of", at/pageSize, kind, cells, left, len(content), done.Records)
		}
	}
	if repaired < 5 {
		t.Errorf("only %d of %d damages were repaired", repaired, len(whole)/pageSize)
	}
}

// Flipped bytes anywhere: repairing never fails in another way than by saying that
// nothing can be read, and what it keeps is right.
func TestRepairFlips(t *testing.T) {
	t.Parallel() // it mostly waits for the disk
	path, content := library(t, 12)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stride := 3989
	if need.Proof() {
		stride = 97
	}
	for at := 0; at < len(whole); at += stride {
		spoiled := bytes.Clone(whole)
		spoiled[at] ^= 1 << (at % 8)
		copied := filepath.Join(t.TempDir(), "usher.db")
		if err := os.WriteFile(copied, spoiled, fileMode); err != nil {
			t.Fatal(err)
		}
		if _, err := Repair(t.Context(), copied); err != nil {
			if !errors.Is(err, vault.ErrCorrupt) && !errors.Is(err, vault.ErrNewer) {
				t.Errorf("byte %d: %v", at, err)
			}
			continue
		}
		survivors(t, copied, content)
	}
}

// A sound store is left alone.
func TestRepairNothing(t *testing.T) {
	path, content := library(t, 5)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	done, err := Repair(t.Context(), path)
	if err != nil || len(done.Found) != 0 || done.Copy != "" {
		t.Fatalf("Repair = %+v, %v; want nothing", done, err)
	}
	after, err := os.ReadFile(path)
	if err != nil || len(after) != len(before) {
		t.Errorf("the file was changed, %v", err)
	}
	if copies, _ := filepath.Glob(path + ".*"); len(copies) != 0 {
		t.Errorf("left behind: %q", copies)
	}
	if n := survivors(t, path, content); n != len(content) {
		t.Errorf("%d of %d left", n, len(content))
	}
}

// A record with a wrong sum is set aside, versions go on above all that were.
func TestRepairRecord(t *testing.T) {
	path, content := library(t, 5)
	s := openPath(t, path)
	damage(t, s, `UPDATE usher_records SET data = x'00' WHERE name = 'record 002'`)
	last, err := s.Put(t.Context(), vault.LocalKey("test", "last"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(t.Context(), path); !errors.Is(err, vault.ErrUnavailable) || !strings.Contains(err.Error(), "stop all usher processes") {
		t.Errorf("while it is in use: %v, want ErrUnavailable", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	done, err := Repair(t.Context(), path)
	if err != nil || done.Records != 5 || done.Quarantined != 1 || done.Counters != 1 || done.Audit != 1 || done.Copy == "" {
		t.Fatalf("Repair = %+v, %v", done, err)
	}
	if n := survivors(t, path, content); n != 4 {
		t.Errorf("%d records left, want 4", n)
	}
	s = openPath(t, path)
	if rec := mustPut(t, s, "new", "x"); rec.Version <= last.Version {
		t.Errorf("version %d after %d", rec.Version, last.Version)
	}
	if kept, err := s.Quarantined(t.Context()); err != nil || len(kept) != 1 || kept[0].Name != "record 002" {
		t.Errorf("Quarantined = %v, %v", kept, err)
	}
	if n, err := s.Add(t.Context(), vault.LocalKey("budget", "b"), 0); err != nil || n != 42 {
		t.Errorf("the counter is %d, %v", n, err)
	}
}

func TestRepairRefuses(t *testing.T) {
	if _, err := Repair(t.Context(), "postgres://localhost/x"); !errors.Is(err, vault.ErrInvalid) {
		t.Errorf("PostgreSQL: %v, want ErrInvalid", err)
	}
	none := filepath.Join(t.TempDir(), "none.db")
	if _, err := Repair(t.Context(), none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file was made")
	}
}
