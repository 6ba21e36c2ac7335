package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// childSaves is how many times the child saves; without it, forever.
const childSaves = "USHER_SQLSTORE_SAVES"

func loginKey() vault.Key { return vault.LocalKey(vault.KindGrant, "login") }
func bystanderKey(i int) vault.Key {
	return vault.LocalKey(vault.KindGrant, fmt.Sprint("bystander ", i))
}
func bystanderData(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 900) }
func sealedStore(s *Store) vault.Store {
	// Beside the store, as a machine without a keychain has it.
	key := filepath.Join(filepath.Dir(s.path), "usher.key")
	return keys.Sealed(s, keys.New(s, keys.Options{Setting: "file:" + key}))
}

const bystanders = 3

// attempts is how often the child tries a step that fails.
const attempts = 4

// childSave is a process that renews a login over and over: it looks whether the
// store can be written, spends what cannot be had again, and saves its successor.
// It says what it saved and what it gave up.
func childSave(ctx context.Context) int {
	runtime.LockOSThread() // system calls are counted by thread
	saves, _ := strconv.Atoi(os.Getenv(childSaves))
	var s *Store
	var err error
	for range attempts {
		if s, err = Open(ctx, os.Getenv(childStore), nil); err == nil {
			break
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stdout, "failed 0", err)
		return 0
	}
	defer func() { _ = s.Close() }() // what counts was said
	sealed := sealedStore(s)
	n := 0
	for range attempts {
		if n, err = savedIn(ctx, sealed); err == nil {
			break
		}
	}
	for i := 0; err == nil && (saves == 0 || i < saves); i++ {
		for range attempts {
			if err = saveOnce(ctx, sealed, n+1); err == nil {
				break
			}
		}
		if err == nil {
			n++
			fmt.Fprintln(os.Stdout, "saved", n)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stdout, "failed", n+1, err)
	}
	return 0
}

// saveOnce replaces the n-1st login by the nth, unless that was done by an attempt
// that could not tell.
func saveOnce(ctx context.Context, s vault.Store, n int) error {
	rec, err := s.Get(ctx, loginKey())
	if err != nil && !errors.Is(err, vault.ErrNotFound) {
		return err
	}
	if bytes.Equal(rec.Data, body(n)) {
		return nil
	}
	if err := s.Ready(ctx, len(body(n))); err != nil {
		return err
	}
	_, err = s.Put(ctx, loginKey(), body(n), rec.Version)
	return err
}

// savedIn is the number of the login in the store, 0 when there is none.
func savedIn(ctx context.Context, s vault.Store) (n int, err error) {
	rec, err := s.Get(ctx, loginKey())
	if errors.Is(err, vault.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscan(string(rec.Data), &n); err != nil {
		return 0, err
	}
	if !bytes.Equal(rec.Data, body(n)) {
		return 0, fmt.Errorf("login %d is torn", n)
	}
	return n, nil
}

// lastSaid reads what the child said: the last login it saved, before if none, and
// whether it gave up.
func lastSaid(t *testing.T, out string, before int) (saved int, gaveUp string) {
	t.Helper()
	saved = before
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, "\n") {
			break // cut off by its end
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "saved":
			saved = mustAtoi(t, rest)
		case "failed":
			gaveUp = rest
		}
	}
	return saved, gaveUp
}

// furnished makes a store with a login, others beside it, and their key.
func furnished(t *testing.T, path string) {
	t.Helper()
	s := openPath(t, path)
	sealed := sealedStore(s)
	for i := range bystanders {
		if _, err := sealed.Put(t.Context(), bystanderKey(i), bystanderData(i), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := saveOnce(t.Context(), sealed, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkSaved opens the store as the next process would: the login that was
// acknowledged is there, or the one that was being saved, whole; the others are
// untouched; and saving goes on.
func checkSaved(t *testing.T, path string, acknowledged int, withOthers bool) (found int) {
	t.Helper()
	s, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // the test is over with it
	sealed := sealedStore(s)
	found, err = savedIn(t.Context(), sealed)
	if err != nil || found != acknowledged && found != acknowledged+1 {
		t.Fatalf("after %d was acknowledged the login is %d, %v", acknowledged, found, err)
	}
	for i := range bystanders {
		rec, err := sealed.Get(t.Context(), bystanderKey(i))
		if withOthers && (err != nil || !bytes.Equal(rec.Data, bystanderData(i))) {
			t.Fatalf("bystander %d: %.20q, %v", i, rec.Data, err)
		}
	}
	if err := saveOnce(t.Context(), sealed, found+1); err != nil {
		t.Fatalf("saving does not go on: %v", err)
	}
	return found + 1
}
