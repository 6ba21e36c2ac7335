package keys_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
	"github.com/usher-mcp/usher/vault/vaulttest"
)

const (
	keyA = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	keyB = "66656463626139383736353433323130666564636261393837363534333231ff"
)

func TestKeysContract(t *testing.T) {
	vaulttest.Run(t, func(t *testing.T) vault.Store {
		raw := openMemory(t)
		return keys.Sealed(raw, keys.New(raw, keys.Options{Setting: "file:" + filepath.Join(t.TempDir(), "key")}))
	})
}

// Whatever byte of a sealed record changes, it does not open, says so, and hides
// no other record.
func TestEveryByteIsUnderTheSeal(t *testing.T) {
	w := newWorld(t)
	s := w.sealed("auto")
	w.keychain.broken = errors.New("absent")
	good, bad := grantKey("good"), grantKey("bad")
	mustPut(t, s, good, "keep me")
	rec := mustPut(t, s, bad, "a token")
	raw, err := w.store.Get(t.Context(), bad)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw.Data, []byte("token")) {
		t.Fatal("the token is stored in the clear")
	}
	try := func(what string, data []byte) {
		t.Helper()
		w.rewrite(t, bad, data)
		_, err = s.Get(t.Context(), bad)
		if !errors.Is(err, vault.ErrCorrupt) && !errors.Is(err, vault.ErrNewer) {
			t.Errorf("%s: %v, want ErrCorrupt or ErrNewer", what, err)
		}
		mustGet(t, s, good, "keep me")
	}
	for i := range raw.Data {
		for bit := range 8 {
			data := bytes.Clone(raw.Data)
			data[i] ^= 1 << bit
			try(fmt.Sprintf("bit %d of byte %d flipped", bit, i), data)
		}
		try(fmt.Sprintf("cut to %d bytes", i), raw.Data[:i])
	}
	try("a byte too many", append(bytes.Clone(raw.Data), 0))
	moved, err := w.store.Get(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	try("moved from another record", moved.Data)
	try("never sealed", []byte(`{"access_token":"plain"}`+strings.Repeat(" ", 60)))
	w.rewrite(t, bad, raw.Data)
	mustGet(t, s, bad, "a token")
	if _, err := w.store.Put(t.Context(), bad, raw.Data, rec.Version); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), bad); !errors.Is(err, vault.ErrCorrupt) {
		t.Errorf("put back under a newer version: %v, want ErrCorrupt", err)
	}
}

// Where the key is kept for each setting, and that a second process finds it.
func TestKeyPlaces(t *testing.T) {
	tests := []struct {
		name, setting string
		prepare       func(w *keyWorld)
		want          string // $DIR stands for the world's directory
	}{
		{"auto with a keychain", "auto", func(*keyWorld) {}, "keychain"},
		{"auto without", "auto", func(w *keyWorld) { w.keychain.broken = errors.New("absent") }, "file:$DIR/state/usher.key"},
		{"auto with a full keychain", "auto", func(w *keyWorld) { w.keychain.full = errors.New("too big") }, "file:$DIR/state/usher.key"},
		{"auto with one that forgets", "auto", func(w *keyWorld) { w.keychain.forgets = true }, "file:$DIR/state/usher.key"},
		{"keychain", "keychain", func(*keyWorld) {}, "keychain"},
		{"new file", "file:$DIR/a/b/key", func(*keyWorld) {}, "file:$DIR/a/b/key"},
		{"file of somebody", "file:$DIR/key", func(w *keyWorld) {
			if os.WriteFile(filepath.Join(w.dir, "key"), []byte(keyA+"\n"), 0o400) != nil {
				panic("no file")
			}
		}, "file:$DIR/key"},
		{"environment, base64", "env:K", func(w *keyWorld) { w.env["K"] = keyA }, "env:K"},
		{"environment, hexadecimal", "env:K", func(w *keyWorld) { w.env["K"] = keyB }, "env:K"},
		{"environment, URL base64", "env:K", func(w *keyWorld) { w.env["K"] = strings.TrimRight(keyA, "=") }, "env:K"},
		{"passphrase asked for", "passphrase", func(w *keyWorld) { w.phrases = []string{"correct horse", "correct horse"} }, "passphrase"},
		{"passphrase in the environment", "passphrase", func(w *keyWorld) { w.env["USHER_PASSPHRASE"] = "correct horse" }, "passphrase"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.prepare(w)
			fill := strings.NewReplacer("$DIR", w.dir)
			setting := fill.Replace(tt.setting)
			mustPut(t, w.sealed(setting), grantKey("a"), "token")
			mustGet(t, w.sealed(setting), grantKey("a"), "token")
			status, err := w.keys(setting).Status(t.Context())
			if err != nil || !status.Made || len(status.Places) != 1 || status.Places[0].Place != fill.Replace(tt.want) {
				t.Fatalf("Status = %+v, %v; want %s", status, err, tt.want)
			}
			if path, ok := strings.CutPrefix(status.Places[0].Place, "file:"); ok {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("key file: %v, %v", info.Mode(), err)
				}
				if !strings.Contains(status.Statement(), path) {
					t.Errorf("the statement %q does not name %s", status.Statement(), path)
				}
			}
		})
	}
}

// A key that cannot be had, or is another one, is no damage: nothing is taken
// for lost, and the error says what to do.
func TestKeyTrouble(t *testing.T) {
	tests := []struct {
		name, setting string
		prepare       func(w *keyWorld)
		spoil         func(w *keyWorld)
		want          error
		says          string
	}{
		{"keychain locked", "keychain", nil, func(w *keyWorld) { w.keychain.broken = errors.New("locked") }, vault.ErrNoKey, "unlock the keychain"},
		{"keychain emptied", "keychain", nil, func(w *keyWorld) { w.keychain.entries = nil }, vault.ErrNoKey, "backup"},
		{"auto, keychain locked", "auto", nil, func(w *keyWorld) { w.keychain.broken = errors.New("locked") }, vault.ErrNoKey, "unlock the keychain"},
		{"file gone", "file:$DIR/key", nil, func(w *keyWorld) { _ = os.Remove(filepath.Join(w.dir, "key")) }, vault.ErrNoKey, "backup"},
		{"file exposed", "file:$DIR/key", nil, func(w *keyWorld) { _ = os.Chmod(filepath.Join(w.dir, "key"), 0o640) }, vault.ErrNoKey, "chmod 600"},
		{"file is no key", "file:$DIR/key", nil, func(w *keyWorld) { _ = os.WriteFile(filepath.Join(w.dir, "key"), []byte("hello"), 0o600) }, vault.ErrNoKey, "check the file"},
		{"file of another store", "file:$DIR/key", nil, func(w *keyWorld) { _ = os.WriteFile(filepath.Join(w.dir, "key"), []byte(keyB), 0o600) }, vault.ErrWrongKey, "right key"},
		{"variable unset", "env:K", func(w *keyWorld) { w.env["K"] = keyA }, func(w *keyWorld) { delete(w.env, "K") }, vault.ErrNoKey, "openssl rand"},
		{"variable changed", "env:K", func(w *keyWorld) { w.env["K"] = keyA }, func(w *keyWorld) { w.env["K"] = keyB }, vault.ErrWrongKey, "right key"},
		{"wrong passphrase", "passphrase", func(w *keyWorld) { w.phrases = []string{"correct horse"} }, func(w *keyWorld) { w.phrases = []string{"a", "b", "c", "correct horse"} }, vault.ErrWrongKey, "terminal"},
		{"wrong passphrase in the environment", "passphrase", func(w *keyWorld) { w.phrases = []string{"correct horse"} }, func(w *keyWorld) { w.env["USHER_PASSPHRASE"] = "wrong horse" }, vault.ErrWrongKey, "USHER_PASSPHRASE"},
		{"nobody to ask", "passphrase", func(w *keyWorld) { w.phrases = []string{"correct horse"} }, func(*keyWorld) {}, vault.ErrNoKey, "terminal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.prepare != nil {
				tt.prepare(w)
			}
			setting := strings.ReplaceAll(tt.setting, "$DIR", w.dir)
			mustPut(t, w.sealed(setting), grantKey("a"), "token")
			tt.spoil(w)
			s := w.sealed(setting)
			reads := map[string]func() error{
				"get":   func() error { _, err := s.Get(t.Context(), grantKey("a")); return err },
				"take":  func() error { _, err := s.Take(t.Context(), grantKey("a")); return err },
				"list":  func() error { _, err := s.List(t.Context(), vault.KindGrant, ""); return err },
				"put":   func() error { _, err := s.Put(t.Context(), grantKey("b"), nil, 0); return err },
				"ready": func() error { return s.Ready(t.Context(), 100) },
			}
			for name, read := range reads {
				err := read()
				if !errors.Is(err, tt.want) || !errors.Is(err, vault.ErrUnavailable) || errors.Is(err, vault.ErrCorrupt) {
					t.Errorf("%s: %v; want %v, ErrUnavailable and not ErrCorrupt", name, err, tt.want)
				}
				var hint interface{ Hint() string }
				if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), tt.says) {
					t.Errorf("%s: %v has no hint with %q", name, err, tt.says)
				}
			}
			if _, err := w.store.Get(t.Context(), grantKey("a")); err != nil {
				t.Errorf("the record is gone: %v", err)
			}
		})
	}
}

// A setting that names another place than the one in use says which it is.
func TestKeyElsewhere(t *testing.T) {
	w := newWorld(t)
	w.env["K"] = keyA
	mustPut(t, w.sealed("env:K"), grantKey("a"), "token")
	for _, setting := range []string{"auto", "keychain", "passphrase"} {
		_, err := w.sealed(setting).Get(t.Context(), grantKey("a"))
		var e *keys.Error
		if !errors.As(err, &e) || !errors.Is(err, vault.ErrWrongKey) || !strings.Contains(e.Hint(), "USHER_KEY=env:K") {
			t.Errorf("%s: %v; want ErrWrongKey and the right setting", setting, err)
		}
	}
	if _, err := w.sealed("ftp:x").Get(t.Context(), grantKey("a")); !errors.Is(err, vault.ErrInvalid) {
		t.Errorf("a bad setting: %v, want ErrInvalid", err)
	}
}

// A setting that cannot be believed makes no key and opens nothing.
func TestKeyRefused(t *testing.T) {
	w := newWorld(t)
	broken := errors.New("line 7 makes no sense")
	k := keys.New(w.store, keys.Options{Refuse: broken, File: w.stateFile(), Keychain: w.keychain})
	_, err := keys.Sealed(w.store, k).Put(t.Context(), grantKey("a"), nil, 0)
	if !errors.Is(err, broken) || !errors.Is(err, vault.ErrNoKey) {
		t.Errorf("Put = %v, want the reason", err)
	}
	if _, err := os.Stat(w.stateFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a key was made: %v", err)
	}
}

// Nothing asks for the key as long as no record is written or found.
func TestKeysAreLazy(t *testing.T) {
	w := newWorld(t)
	s := w.sealed("auto")
	for _, kind := range []string{vault.KindApproval, vault.KindEra, vault.KindCatalog, vault.KindPin, vault.KindStep} {
		if _, err := s.Get(t.Context(), vault.LocalKey(kind, "x")); !errors.Is(err, vault.ErrNotFound) {
			t.Errorf("Get = %v, want ErrNotFound", err)
		}
		if _, err := s.List(t.Context(), kind, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.List(t.Context(), vault.KindGrant, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.keys("auto").Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls, _ := w.keychain.count(); calls != 0 {
		t.Errorf("the keychain was asked %d times", calls)
	}
	if _, err := s.Get(t.Context(), grantKey("none")); !errors.Is(err, vault.ErrNotFound) {
		t.Errorf("Get = %v, want ErrNotFound", err)
	}
}

// Several processes that all find no key make one.
func TestKeysMadeOnce(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := w.sealed("auto").Put(t.Context(), grantKey(fmt.Sprint(i)), []byte("token"), 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := w.sealed("auto")
	for i := range 8 {
		mustGet(t, s, grantKey(fmt.Sprint(i)), "token")
	}
	if _, entries := w.keychain.count(); entries != 1 {
		t.Errorf("%d entries in the keychain, want 1", entries)
	}
}

// The keys survive the loss of their record, and a store that has lost both says
// that its records were sealed with another key.
func TestRingHasACopy(t *testing.T) {
	w := newWorld(t)
	mustPut(t, w.sealed("auto"), grantKey("a"), "token")
	ring := vault.LocalKey(vault.KindKey, "ring")
	if _, err := w.store.Take(t.Context(), ring); err != nil {
		t.Fatal(err)
	}
	mustGet(t, w.sealed("auto"), grantKey("a"), "token")
	rec, err := w.store.Get(t.Context(), ring)
	if err != nil {
		t.Fatalf("the ring was not restored: %v", err)
	}
	if _, err := w.store.Put(t.Context(), ring, []byte("{"), rec.Version); err != nil {
		t.Fatal(err)
	}
	mustGet(t, w.sealed("auto"), grantKey("a"), "token")
	for _, name := range []string{"ring", "spare"} {
		if _, err := w.store.Take(t.Context(), vault.LocalKey(vault.KindKey, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := w.sealed("auto")
	if _, err := s.Get(t.Context(), grantKey("a")); !errors.Is(err, vault.ErrCorrupt) || !errors.Is(err, vault.ErrUnknownKey) {
		t.Errorf("Get = %v, want ErrCorrupt and ErrUnknownKey", err)
	}
	mustPut(t, s, grantKey("new"), "another")
	mustGet(t, w.sealed("auto"), grantKey("new"), "another")
}

// Keys that a newer usher wrote are left alone.
func TestNewerRing(t *testing.T) {
	w := newWorld(t)
	mustPut(t, w.store, vault.LocalKey(vault.KindKey, "ring"), `{"format":3,"keys":"elsewhere"}`)
	s := w.sealed("auto")
	if _, err := s.Put(t.Context(), grantKey("a"), nil, 0); !errors.Is(err, vault.ErrNewer) {
		t.Errorf("Put = %v, want ErrNewer", err)
	}
}
