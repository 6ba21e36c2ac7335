package keys_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// fakeKeychain misbehaves on request.
type fakeKeychain struct {
	mu      sync.Mutex // guards the fields below
	entries map[string]string
	calls   int
	hang    chan struct{} // non-nil: calls wait until it is closed
	broken  error         // non-nil: calls fail
	full    error         // non-nil: Set fails
	forgets bool          // Set says yes and keeps nothing
}

func (f *fakeKeychain) begin() error {
	f.mu.Lock()
	f.calls++
	hang, broken := f.hang, f.broken
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return broken
}

func (f *fakeKeychain) Get(_, entry string) (string, error) {
	if err := f.begin(); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.entries[entry]
	if !ok {
		return "", vault.ErrNotFound
	}
	return text, nil
}

func (f *fakeKeychain) Set(_, entry, secret string) error {
	if err := f.begin(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full != nil || f.forgets {
		return f.full
	}
	if f.entries == nil {
		f.entries = map[string]string{}
	}
	f.entries[entry] = secret
	return nil
}

func (f *fakeKeychain) Remove(_, entry string) error {
	if err := f.begin(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.entries[entry]; !ok {
		return vault.ErrNotFound
	}
	delete(f.entries, entry)
	return nil
}

func (f *fakeKeychain) count() (calls, entries int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls, len(f.entries)
}

// keyWorld is a machine with places for keys; every test has its own.
type keyWorld struct {
	store    *vault.Memory
	dir      string
	keychain *fakeKeychain
	env      map[string]string
	phrases  []string // answers to questions, in order
	asked    []keys.PassphraseQuestion
}

func newWorld(t *testing.T) *keyWorld {
	t.Helper()
	w := &keyWorld{store: vault.NewMemory(), dir: t.TempDir(), keychain: &fakeKeychain{}, env: map[string]string{}}
	t.Cleanup(func() { _ = w.store.Close() }) // memory
	return w
}

func (w *keyWorld) stateFile() string { return filepath.Join(w.dir, "state", "usher.key") }

// keys are the keys of a new process with this setting.
func (w *keyWorld) keys(setting string) *keys.Keys {
	return keys.New(w.store, keys.Options{
		Setting: setting, File: w.stateFile(), Keychain: w.keychain, ScryptLog: 4,
		Env: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		Passphrase: func(_ context.Context, q keys.PassphraseQuestion) (vault.Secret, error) {
			w.asked = append(w.asked, q)
			if len(w.phrases) == 0 {
				return vault.Secret{}, errors.New("the person left")
			}
			phrase := w.phrases[0]
			w.phrases = w.phrases[1:]
			return vault.NewSecret(phrase), nil
		},
	})
}

func (w *keyWorld) sealed(setting string) vault.Store { return keys.Sealed(w.store, w.keys(setting)) }

func grantKey(name string) vault.Key { return vault.LocalKey(vault.KindGrant, name) }

func mustPut(t *testing.T, s vault.Store, key vault.Key, data string) vault.Record {
	t.Helper()
	rec, err := s.Put(t.Context(), key, []byte(data), 0)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func mustGet(t *testing.T, s vault.Store, key vault.Key, want string) vault.Record {
	t.Helper()
	rec, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if string(rec.Data) != want {
		t.Fatalf("%s = %q, want %q", key, rec.Data, want)
	}
	return rec
}

// rewrite changes the bytes of a record and nothing else, as a database writer can.
func (w *keyWorld) rewrite(t *testing.T, key vault.Key, data []byte) {
	t.Helper()
	rec, err := w.store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := w.store.Lease(t.Context(), "rewrite", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.Rewrite(t.Context(), key, data, rec.Version, lease); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}
