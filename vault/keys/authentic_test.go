package keys_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

func tokenKey(name string) vault.Key { return vault.LocalKey(vault.KindToken, name) }

// plainKinds are the kinds that are stored in the clear.
func plainKinds() []string {
	return []string{
		vault.KindApproval, vault.KindEra, vault.KindCatalog, vault.KindPin, vault.KindBudget, vault.KindStep, vault.KindToken,
	}
}

// wantRefused wants a record to be damaged for every way to read it.
func wantRefused(t *testing.T, s vault.Store, key vault.Key) {
	t.Helper()
	if rec, err := s.Get(t.Context(), key); !errors.Is(err, vault.ErrCorrupt) {
		t.Errorf("Get %s = %q, %v; want ErrCorrupt", key, rec.Data, err)
	}
	recs, err := s.List(t.Context(), key.Kind, key.Principal)
	if !errors.Is(err, vault.ErrCorrupt) {
		t.Errorf("List %s: %v, want ErrCorrupt", key.Kind, err)
	}
	for _, rec := range recs {
		if rec.Key == key {
			t.Errorf("List gives %s: %q", key, rec.Data)
		}
	}
}

// Somebody who writes the database without the key can make no record, change none
// and move none.
func TestDatabaseWriterForgesNothing(t *testing.T) {
	for _, kind := range plainKinds() {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			s := w.sealed("auto")
			mine, other := vault.LocalKey(kind, "mine"), vault.Key{Kind: kind, Principal: "eve", Name: "mine"}
			mustPut(t, s, mine, `{"servers":["one"]}`)
			mustGet(t, s, mine, `{"servers":["one"]}`)
			raw, err := w.store.Get(t.Context(), mine)
			if err != nil {
				t.Fatal(err)
			}

			made := vault.LocalKey(kind, "made")
			mustPut(t, w.store, made, `{"servers":[]}`)
			wantRefused(t, s, made)
			wantRefused(t, w.sealed("auto"), made) // a new process

			mustPut(t, w.store, other, string(raw.Data))
			wantRefused(t, s, other)
			renamed := vault.LocalKey(kind, "renamed")
			mustPut(t, w.store, renamed, string(raw.Data))
			wantRefused(t, s, renamed)

			for i := range raw.Data {
				data := bytes.Clone(raw.Data)
				data[i] ^= 1
				w.rewrite(t, mine, data)
				if rec, err := s.Get(t.Context(), mine); err == nil {
					t.Fatalf("byte %d changed: got %q", i, rec.Data)
				}
			}
			w.rewrite(t, mine, raw.Data)
			mustGet(t, s, mine, `{"servers":["one"]}`)
		})
	}
}

// An older value of a record does not come back under a newer version, nor, in a
// process that has seen the newer one, as the whole row.
func TestOlderVersionsDoNotComeBack(t *testing.T) {
	for _, kind := range []string{vault.KindToken, vault.KindApproval, vault.KindPin} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			s := w.sealed("auto")
			key := vault.LocalKey(kind, "k")
			first := mustPut(t, s, key, "wide")
			old, err := w.store.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Put(t.Context(), key, []byte("narrow"), first.Version); err != nil {
				t.Fatal(err)
			}
			good, err := w.store.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			w.rewrite(t, key, old.Data)
			wantRefused(t, s, key)
			wantRefused(t, w.sealed("auto"), key)
			w.rewrite(t, key, good.Data)
			mustGet(t, s, key, "narrow")

			rows := &rowStore{Memory: w.store}
			s = keys.Sealed(rows, w.keys("auto"))
			mustGet(t, s, key, "narrow")
			rows.row = &old
			wantRefused(t, s, key)
			rows.row = nil
			if _, err := s.Take(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			rows.row = &good
			wantRefused(t, s, key)
		})
	}
}

// rowStore is a store whose one row was replaced by another, version and all.
type rowStore struct {
	*vault.Memory
	row *vault.Record
}

func (s *rowStore) Get(ctx context.Context, key vault.Key) (vault.Record, error) {
	if s.row != nil && s.row.Key == key {
		return *s.row, nil
	}
	return s.Memory.Get(ctx, key)
}

func (s *rowStore) List(ctx context.Context, kind, principal string) ([]vault.Record, error) {
	if s.row != nil && s.row.Kind == kind {
		return []vault.Record{*s.row}, nil
	}
	return s.Memory.List(ctx, kind, principal)
}

// legacyWorld is a store as an usher left it that did not authenticate records.
func legacyWorld(t *testing.T, ring bool) (*keyWorld, map[vault.Key]string) {
	t.Helper()
	w := newWorld(t)
	w.env["K"] = keyA
	want := map[vault.Key]string{}
	for _, kind := range plainKinds() {
		for _, principal := range []string{vault.Local, "alice"} {
			key := vault.Key{Kind: kind, Principal: principal, Name: "old"}
			want[key] = fmt.Sprintf(`{"of":%q}`, key)
			mustPut(t, w.store, key, want[key])
		}
	}
	if ring {
		if err := keys.PutLegacyRing(t.Context(), w.store, "env:K", keyA); err != nil {
			t.Fatal(err)
		}
	}
	return w, want
}

// What an older usher stored is authenticated once, and from then on nothing is
// believed that is not.
func TestLegacyStoreIsAuthenticatedOnce(t *testing.T) {
	for _, ring := range []bool{true, false} {
		for first, begin := range map[string]func(t *testing.T, s vault.Store){
			"get": func(t *testing.T, s vault.Store) {
				mustGet(t, s, tokenKey("old"), fmt.Sprintf(`{"of":%q}`, tokenKey("old")))
			},
			"list": func(t *testing.T, s vault.Store) {
				if recs, err := s.List(t.Context(), vault.KindPin, ""); err != nil || len(recs) != 2 {
					t.Errorf("List = %v, %v", recs, err)
				}
			},
			"put": func(t *testing.T, s vault.Store) { mustPut(t, s, tokenKey("new"), "x") },
		} {
			t.Run(fmt.Sprintf("ring %v, first %s", ring, first), func(t *testing.T) {
				w, want := legacyWorld(t, ring)
				s := w.sealed("env:K")
				begin(t, s)
				for _, s := range []vault.Store{s, w.sealed("env:K")} {
					for key, data := range want {
						mustGet(t, s, key, data)
					}
				}
				forged := tokenKey("forged")
				mustPut(t, w.store, forged, `{"servers":[]}`)
				wantRefused(t, s, forged)
				wantRefused(t, w.sealed("env:K"), forged)
				if _, err := w.keys("env:K").Rotate(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				for key, data := range want {
					mustGet(t, w.sealed("env:K"), key, data)
				}
				wantRefused(t, w.sealed("env:K"), forged)
			})
		}
	}
}

// Nobody without the key makes an authenticated store look like an old one.
func TestStoreDoesNotGoBackToLegacy(t *testing.T) {
	ringKeys := []vault.Key{vault.LocalKey(vault.KindKey, "ring"), vault.LocalKey(vault.KindKey, "spare")}
	change := func(t *testing.T, w *keyWorld, do func(ring map[string]any)) {
		t.Helper()
		for _, key := range ringKeys {
			rec, err := w.store.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			ring := map[string]any{}
			if err := json.Unmarshal(rec.Data, &ring); err != nil {
				t.Fatal(err)
			}
			do(ring)
			data, err := json.Marshal(ring)
			if err != nil {
				t.Fatal(err)
			}
			w.rewrite(t, key, data)
		}
	}
	attacks := map[string]func(t *testing.T, w *keyWorld){
		"the ring says that it is old": func(t *testing.T, w *keyWorld) {
			change(t, w, func(ring map[string]any) { ring["format"] = 1 })
		},
		"the ring is gone": func(t *testing.T, w *keyWorld) {
			for _, key := range ringKeys {
				if _, err := w.store.Take(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
		},
		"the ring names no lock": func(t *testing.T, w *keyWorld) {
			change(t, w, func(ring map[string]any) { delete(ring, "locks") })
		},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.env["K"] = keyA
			s := w.sealed("env:K")
			mustPut(t, s, tokenKey("good"), "{}")
			attack(t, w)
			forged := tokenKey("forged")
			mustPut(t, w.store, forged, `{"servers":[]}`)
			for who, s := range map[string]vault.Store{"running": s, "new": w.sealed("env:K")} {
				for range 2 {
					if rec, err := s.Get(t.Context(), forged); err == nil {
						t.Fatalf("the %s process believes %q", who, rec.Data)
					}
				}
				_, _ = s.Put(t.Context(), tokenKey("another "+who), nil, 0) // may fail
				if rec, err := s.Get(t.Context(), forged); err == nil {
					t.Fatalf("the %s process believes %q after a write", who, rec.Data)
				}
			}
		})
	}
}

// A process that has used an authenticated ring refuses an older one that is put back.
func TestOldRingIsRefusedByRunningProcess(t *testing.T) {
	w, _ := legacyWorld(t, true)
	old, err := w.store.Get(t.Context(), vault.LocalKey(vault.KindKey, "ring"))
	if err != nil {
		t.Fatal(err)
	}
	s := w.sealed("env:K")
	mustPut(t, s, tokenKey("new"), "{}")
	now, err := w.store.Get(t.Context(), old.Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Put(t.Context(), old.Key, old.Data, now.Version); err != nil {
		t.Fatal(err)
	}
	mustPut(t, w.store, tokenKey("forged"), "{}")
	if _, err := s.Put(t.Context(), tokenKey("newer"), nil, 0); !errors.Is(err, vault.ErrTampered) {
		t.Errorf("Put = %v, want ErrTampered", err)
	}
	wantRefused(t, s, tokenKey("forged"))
}

// A shared database without keys is not believed: somebody may have removed them.
// A person can make new ones.
func TestSharedStoreWithoutKeys(t *testing.T) {
	w, want := legacyWorld(t, false)
	env := func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }
	open := func() *keys.Keys {
		return keys.New(w.store, keys.Options{Setting: "env:K", Shared: true, Env: env})
	}
	k := open()
	s := keys.Sealed(w.store, k)
	_, err := s.Get(t.Context(), tokenKey("old"))
	if hinted, ok := errors.AsType[*keys.Error](err); !ok || hinted.Hint() == "" {
		t.Fatalf("Get = %v, want a KeyError with a hint", err)
	}
	if _, err := s.Put(t.Context(), tokenKey("new"), nil, 0); !errors.Is(err, vault.ErrNoKey) {
		t.Errorf("Put = %v, want ErrNoKey", err)
	}
	if _, err := k.Rotate(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	s = keys.Sealed(w.store, open())
	for key, data := range want {
		if !vault.Expendable(key.Kind) {
			mustGet(t, s, key, data)
		}
	}
	mustPut(t, w.store, tokenKey("forged"), "{}")
	wantRefused(t, s, tokenKey("forged"))
}

// What is not authentic can be removed and replaced by those who may.
func TestForgedRecordsCanBeReplaced(t *testing.T) {
	w := newWorld(t)
	s := w.sealed("auto")
	ctx := t.Context()
	mustPut(t, s, tokenKey("good"), "{}")
	forged := vault.Approval{Digest: "d", Server: "evil"}
	data, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, w.store, vault.LocalKey(vault.KindApproval, "d"), string(data))
	approvals := vault.NewApprovals(s, "")
	if ok, err := approvals.Approved(ctx, "d"); ok || err != nil {
		t.Errorf("a forged approval: %v, %v", ok, err)
	}
	if err := approvals.Approve(ctx, vault.Approval{Digest: "d", Server: "mine"}); err != nil {
		t.Errorf("a person approves: %v", err)
	}
	if ok, err := approvals.Approved(ctx, "d"); !ok || err != nil {
		t.Errorf("afterwards: %v, %v", ok, err)
	}
	mustPut(t, w.store, tokenKey("forged"), "{}")
	if _, err := s.Take(ctx, tokenKey("forged")); !errors.Is(err, vault.ErrCorrupt) {
		t.Errorf("Take = %v, want ErrCorrupt", err)
	}
	if _, err := w.store.Get(ctx, tokenKey("forged")); !errors.Is(err, vault.ErrNotFound) {
		t.Errorf("the forged token is still there: %v", err)
	}
}

// The versions that a process remembers do not grow without bound.
func TestRememberedVersionsAreBounded(t *testing.T) {
	w := newWorld(t)
	s := keys.Sealed(w.store, flip{})
	for i := range limit.RememberedVersions + 100 {
		mustPut(t, s, tokenKey(fmt.Sprint(i)), "x")
	}
	if n := keys.Remembered(s); n > limit.RememberedVersions {
		t.Errorf("%d versions are remembered, at most %d", n, limit.RememberedVersions)
	}
}
