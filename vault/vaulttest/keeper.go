package vaulttest

import (
	"errors"
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
		t.Fatal("the store is no vault.Keeper")
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
	if err := s.Release(ctx, lease); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Rewrite(ctx, a, []byte("late"), before.Version, lease); !errors.Is(err, vault.ErrFenced) {
		t.Errorf("without the lease: %v, want ErrFenced", err)
	}
}
