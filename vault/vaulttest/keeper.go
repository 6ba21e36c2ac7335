package vaulttest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// testKeeper tests what is below a seal, if there is one.
func testKeeper(t *testing.T, s vault.Store) {
	ctx := t.Context()
	keeper, ok := vault.Unsealed(s).(vault.Keeper)
	if !ok {
		t.Fatal("the store is not a vault.Keeper")
	}
	if kinds, err := keeper.Kinds(ctx); err != nil || len(kinds) != 0 {
		t.Errorf("Kinds of an empty store = %q, %v", kinds, err)
	}
	raw := vault.Unsealed(s)
	b, a := vault.LocalKey("b", "x"), vault.LocalKey("a", "y")
	for _, k := range []vault.Key{b, a} {
		if _, err := raw.Put(ctx, k, []byte("old"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if kinds, err := keeper.Kinds(ctx); err != nil || !slices.Equal(kinds, []string{"a", "b"}) {
		t.Errorf("Kinds = %q, %v", kinds, err)
	}
	more := vault.Key{Kind: "a", Principal: "alice", Name: "z"}
	if _, err := raw.Put(ctx, more, nil, 0); err != nil {
		t.Fatal(err)
	}
	if keys, err := keeper.Keys(ctx, "a"); err != nil || !slices.Equal(keys, []vault.Key{more, a}) {
		t.Errorf("Keys = %v, %v", keys, err)
	}
	lease, err := s.Lease(ctx, "keeping", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	before, err := raw.Get(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Rewrite(ctx, a, []byte("new"), before.Version, lease); err != nil {
		t.Fatal(err)
	}
	after, err := raw.Get(ctx, a)
	if err != nil || string(after.Data) != "new" || after.Version != before.Version || !after.Updated.Equal(before.Updated) {
		t.Errorf("rewritten: %+v, %v; want new data and the rest of %+v", after, err, before)
	}
	if err := keeper.Rewrite(ctx, a, []byte("late"), before.Version+1, lease); !errors.Is(err, vault.ErrConflict) {
		t.Errorf("another version: %v, want ErrConflict", err)
	}
	if err := keeper.Rewrite(ctx, vault.LocalKey("a", "none"), nil, 1, lease); !errors.Is(err, vault.ErrConflict) {
		t.Errorf("no record: %v, want ErrConflict", err)
	}
	testPutAs(t, raw, keeper, lease)
	if err := s.Release(ctx, lease); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Rewrite(ctx, a, []byte("late"), before.Version, lease); !errors.Is(err, vault.ErrFenced) {
		t.Errorf("without the lease: %v, want ErrFenced", err)
	}
}

// testPutAs tests that data can depend on the version it is stored under.
func testPutAs(t *testing.T, raw vault.Store, keeper vault.Keeper, lease vault.Lease) {
	t.Helper()
	ctx := t.Context()
	key := vault.LocalKey("as", "k")
	text := func(version int64) []byte { return []byte(fmt.Sprint("version ", version)) }
	check := func(put vault.Record, err error) int64 {
		t.Helper()
		got, getErr := raw.Get(ctx, key)
		if err != nil || getErr != nil || string(got.Data) != string(text(got.Version)) || put.Version != got.Version || string(put.Data) != string(got.Data) {
			t.Fatalf("PutAs = %+v, %v; stored %+v, %v", put, err, got, getErr)
		}
		return got.Version
	}
	version := check(keeper.PutAs(ctx, key, text, 0, nil))
	version = check(keeper.PutAs(ctx, key, text, version, &lease))
	if _, err := keeper.PutAs(ctx, key, text, version-1, nil); !errors.Is(err, vault.ErrConflict) {
		t.Errorf("another version: %v, want ErrConflict", err)
	}
	large := func(int64) []byte { return make([]byte, vault.MaxData+1) }
	if _, err := keeper.PutAs(ctx, key, large, version, nil); !errors.Is(err, vault.ErrInvalid) {
		t.Errorf("too large: %v, want ErrInvalid", err)
	}
	other := lease
	other.Epoch--
	if _, err := keeper.PutAs(ctx, key, text, version, &other); !errors.Is(err, vault.ErrFenced) {
		t.Errorf("another lease: %v, want ErrFenced", err)
	}
}
