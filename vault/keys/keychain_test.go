package keys_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// A keychain that hangs costs its budget once; auto then keeps the key in a file.
func TestHangingKeychainIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.dir = dir
		w.keychain.hang = make(chan struct{})
		defer close(w.keychain.hang) // the fake's calls end with the test
		start := time.Now()
		s := w.sealed("auto")
		mustPut(t, s, grantKey("a"), "token")
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the first secret took %v, want the budget of 2s", took)
		}
		start = time.Now()
		mustPut(t, s, grantKey("b"), "token")
		mustGet(t, w.sealed("auto"), grantKey("a"), "token")
		if took := time.Since(start); took != 0 {
			t.Errorf("later ones took %v", took)
		}
		if calls, _ := w.keychain.count(); calls != 1 {
			t.Errorf("%d calls hang in the keychain, want 1", calls)
		}
	})
}

// A keychain that hangs when the key is in it: every request is answered, at most
// one waits, and once it answers all is well again.
func TestHangingKeychainNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		mustPut(t, w.sealed("keychain"), grantKey("a"), "token")
		hang := make(chan struct{})
		w.keychain.hang = hang
		s := w.sealed("keychain")
		start := time.Now()
		for range 20 {
			if _, err := s.Get(t.Context(), grantKey("a")); !errors.Is(err, vault.ErrNoKey) {
				t.Fatalf("Get = %v, want ErrNoKey", err)
			}
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("20 requests took %v, want 2s", took)
		}
		time.Sleep(6 * time.Second) // asked again, and it still hangs
		if _, err := s.Get(t.Context(), grantKey("a")); !errors.Is(err, vault.ErrNoKey) {
			t.Fatalf("Get = %v, want ErrNoKey", err)
		}
		if calls, _ := w.keychain.count(); calls > 4 { // set, get, and the one that hangs
			t.Errorf("%d calls of the keychain, they pile up", calls)
		}
		w.keychain.mu.Lock()
		w.keychain.hang = nil
		w.keychain.mu.Unlock()
		close(hang)
		time.Sleep(6 * time.Second)
		mustGet(t, s, grantKey("a"), "token")
	})
}

// Many who wait for one unlocking ask once.
func TestUnlockedOnce(t *testing.T) {
	w := newWorld(t)
	w.phrases = []string{"correct horse"}
	mustPut(t, w.sealed("passphrase"), grantKey("a"), "token")
	w.phrases = []string{"correct horse"}
	w.asked = nil
	s := w.sealed("passphrase")
	done := make(chan error)
	for range 10 {
		go func() {
			_, err := s.Get(t.Context(), grantKey("a"))
			done <- err
		}()
	}
	for range 10 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if len(w.asked) != 1 {
		t.Errorf("asked %d times, want once", len(w.asked))
	}
}
