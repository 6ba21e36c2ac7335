package keys_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/vault"
)

func TestSecrets(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	secrets := vault.NewSecrets(w.sealed("auto"), vault.Local)
	const canary = "canary-6f1d"
	for name, value := range map[string]string{"b": "old", "a": canary} {
		if err := secrets.Set(ctx, name, vault.NewSecret(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := secrets.Set(ctx, "b", vault.NewSecret("new")); err != nil {
		t.Fatal(err)
	}
	if err := secrets.Set(ctx, "c", vault.Secret{}); !errors.Is(err, vault.ErrInvalid) {
		t.Errorf("an empty secret: %v, want ErrInvalid", err)
	}
	if value, err := secrets.Get(ctx, "b"); err != nil || value.Reveal() != "new" {
		t.Errorf("Get = %v, %v", value, err)
	}
	list, err := secrets.List(ctx)
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].Fingerprint != vault.NewSecret("new").String() {
		t.Fatalf("List = %+v, %v", list, err)
	}
	shown, _ := json.Marshal(list)
	if strings.Contains(fmt.Sprintf("%+v %s", list, shown), canary) {
		t.Error("the list tells a secret")
	}
	for _, data := range rawData(t, w.store) {
		if strings.Contains(data, canary) {
			t.Error("the store holds a secret in the clear")
		}
	}
	if others, err := vault.NewSecrets(w.sealed("auto"), "alice").List(ctx); err != nil || len(others) != 0 {
		t.Errorf("alice sees %v, %v", others, err)
	}
	if err := secrets.Remove(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Get(ctx, "a"); !errors.Is(err, vault.ErrNotFound) {
		t.Errorf("Get = %v, want ErrNotFound", err)
	}
	if err := secrets.Remove(ctx, "a"); !errors.Is(err, vault.ErrNotFound) {
		t.Errorf("Remove = %v, want ErrNotFound", err)
	}
}

// Without the key secrets can be listed, removed, and (once there is another
// key) replaced.
func TestSecretsWithoutTheKey(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, name := range []string{"a", "b"} {
		if err := vault.NewSecrets(w.sealed("keychain"), vault.Local).Set(ctx, name, vault.NewSecret("x")); err != nil {
			t.Fatal(err)
		}
	}
	w.keychain.broken = errors.New("locked")
	secrets := vault.NewSecrets(w.sealed("keychain"), vault.Local)
	list, err := secrets.List(ctx)
	if err != nil || len(list) != 2 || !errors.Is(list[0].Problem, vault.ErrNoKey) || list[0].Fingerprint != "" {
		t.Fatalf("List = %+v, %v; want two with ErrNoKey", list, err)
	}
	if names, err := secrets.Names(ctx); err != nil || len(names) != 2 || names[0] != "a" {
		t.Errorf("Names = %q, %v", names, err)
	}
	if err := secrets.Remove(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ring", "spare"} {
		if _, err := w.store.Take(ctx, vault.LocalKey(vault.KindKey, name)); err != nil {
			t.Fatal(err)
		}
	}
	secrets = vault.NewSecrets(w.sealed("auto"), vault.Local)
	if _, err := secrets.Get(ctx, "b"); !errors.Is(err, vault.ErrUnknownKey) {
		t.Errorf("Get = %v, want ErrUnknownKey", err)
	}
	if err := secrets.Set(ctx, "b", vault.NewSecret("y")); err != nil {
		t.Fatal(err)
	}
	if value, err := secrets.Get(ctx, "b"); err != nil || value.Reveal() != "y" {
		t.Errorf("Get = %v, %v", value, err)
	}
}
