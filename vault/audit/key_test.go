package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/audit"
	"github.com/usher-mcp/usher/vault/keys"
)

// sealed is store as a new process opens it, its key in place.
func sealed(t *testing.T, store vault.Store, place string) vault.Store {
	t.Helper()
	t.Cleanup(func() { _ = store.Close() }) // memory
	return keys.Sealed(store, keys.New(store, keys.Options{Setting: place}))
}

// keyedChain is a chain of three records and its end, with the key that authenticates it.
func keyedChain(t *testing.T, s vault.Store) ([]vault.AuditEntry, audit.Key) {
	t.Helper()
	load := func(ctx context.Context) (audit.Key, error) { return audit.LoadKey(ctx, s) }
	key, err := load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tr := audit.NewLog(s, &audit.Options{Batch: 1, Key: load})
	for _, name := range []string{"read", "pay", "leave"} {
		a := record(name)
		a.At = time.Now().Add(time.Minute)
		tr.Add(a)
	}
	tr.Close()
	entries, err := s.Audit(t.Context(), vault.AuditQuery{Oldest: true})
	if err != nil || len(entries) != 4 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	return entries, key
}

// rechain makes hashes that fit again after entries were changed, as somebody can who
// writes the database. strip removes all that tells of a key.
func rechain(entries []vault.AuditEntry, strip bool) []vault.AuditEntry {
	prev := ""
	for i := range entries {
		e := &entries[i]
		hash, code, _ := strings.Cut(e.Outcome, ":")
		if i > 0 {
			e.Detail = bytes.Replace(e.Detail, []byte(`"prev":"`+prev+`"`), []byte(`"prev":"`+hashed(entries[i-1])+`"`), 1)
		}
		prev = hash
		if strip {
			head, rest, _ := bytes.Cut(e.Detail, []byte("\n"))
			at := bytes.Index(head, []byte(`,"key":`))
			head = append(bytes.Clone(head[:at]), '}')
			e.Detail = append(append(bytes.Replace(head, []byte(`"v":3`), []byte(`"v":2`), 1), '\n'), rest...)
			code = ""
		}
		e.Outcome = hashOf(e.Detail)
		if code != "" {
			e.Outcome += ":" + code
		}
	}
	return entries
}

func hashed(e vault.AuditEntry) string { hash, _, _ := strings.Cut(e.Outcome, ":"); return hash }

// Somebody who can write the database and knows how chains are made cannot rewrite
// one: hashes he can make, codes he cannot.
func TestDatabaseWriterRewritesNoAuditChain(t *testing.T) {
	s := sealed(t, vault.NewMemory(), "file:"+filepath.Join(t.TempDir(), "key"))
	own, key := keyedChain(t, s)
	if text := fmt.Sprintf("%v %+v %#v", key, key, key); strings.Contains(text, "[") || !strings.Contains(text, "auditKey(") {
		t.Errorf("the key is shown: %s", text)
	}
	pay := func(e []vault.AuditEntry) []vault.AuditEntry {
		e[1].Detail = bytes.Replace(e[1].Detail, []byte("\x03pay"), []byte("\x03nap"), 1)
		return e
	}
	for _, tt := range []struct {
		name  string
		forge func([]vault.AuditEntry) []vault.AuditEntry
		want  string
	}{
		{"as written", func(e []vault.AuditEntry) []vault.AuditEntry { return e }, ""},
		{"a record changed and all hashes made again", func(e []vault.AuditEntry) []vault.AuditEntry { return rechain(pay(e), false) }, "is not authentic"},
		{"and made to look like an older usher's", func(e []vault.AuditEntry) []vault.AuditEntry { return rechain(pay(e), true) }, "carries no authentication code though"},
		{"only the end made to look older", func(e []vault.AuditEntry) []vault.AuditEntry {
			return append(e[:3], rechain(e, true)[3])
		}, "carries no authentication code"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entries := slices.Clone(own)
			for i := range entries {
				entries[i].Detail = bytes.Clone(entries[i].Detail)
			}
			chains, err := audit.Verify(t.Context(), forged{entries: tt.forge(entries)}, &key, nil, time.Time{})
			if err != nil || len(chains) != 1 {
				t.Fatalf("%+v, %v", chains, err)
			}
			got := strings.Join(chains[0].Problems, "; ")
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("problems %q, want %q", got, tt.want)
			}
			if strings.Contains(got, "does not follow") || strings.Contains(got, "was changed after") {
				t.Errorf("the hashes do not fit, the test forges badly: %q", got)
			}
		})
	}
}

// The audit key outlives rotations, and a key that cannot be had loses no record.
func TestAuditKey(t *testing.T) {
	store, place := vault.NewMemory(), "file:"+filepath.Join(t.TempDir(), "key")
	_, key := keyedChain(t, sealed(t, store, place))
	if _, err := keys.New(store, keys.Options{Setting: place}).Rotate(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	later, err := audit.LoadKey(t.Context(), sealed(t, store, place))
	if err != nil || later.String() != key.String() {
		t.Errorf("after a rotation %v, %v; want %v", later, err, key)
	}
	blind := sealed(t, store, "env:NOT_SET")
	tr := audit.NewLog(blind, &audit.Options{
		Key: func(ctx context.Context) (audit.Key, error) { return audit.LoadKey(ctx, blind) },
	})
	tr.Add(record("late"))
	tr.Close()
	if stats := tr.Stats(); stats.Written != 1 || stats.Waiting != 0 {
		t.Errorf("%+v, want the act written", stats)
	}
}
