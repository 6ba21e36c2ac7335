package auth

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// The store is asked once a second for all accounts together, and what another process
// does to one of them is noticed within that second.
func TestOneLookForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		s := &sickStore{Store: w.store}
		e := New(s, &Options{RoundTripper: w.net})
		defer func() { _ = e.Close() }()
		token := func(a Account) string {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, mcpURL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Authorize(t.Context(), a, &w.srv, req); err != nil {
				t.Fatal(err)
			}
			return req.Header.Get("Authorization")
		}
		accounts := []Account{w.a}
		for i := range 99 {
			accounts = append(accounts, Account{Server: fmt.Sprintf("srv%d", i)})
		}
		const seconds = 10
		for range seconds * 10 {
			for _, a := range accounts {
				if got := token(a); got != "" {
					t.Fatalf("%s has %q before anybody logged in", a, got)
				}
			}
			time.Sleep(time.Second / 10)
		}
		if gets, looks := s.gets.Load(), s.looks.Load(); gets != 100 || looks > seconds {
			t.Errorf("%d reads and %d looks in %d seconds, want one read of each and a look a second", gets, looks, seconds)
		}

		w.login() // by another engine, as another process does
		time.Sleep(time.Second)
		first := token(w.a)
		if first == "" {
			t.Fatal("a login of another process is not noticed after a second")
		}
		if n := s.gets.Load(); n != 101 {
			t.Errorf("%d reads, want one for the account that changed", n-100)
		}
		w.login()
		time.Sleep(time.Second)
		if again := token(w.a); again == "" || again == first {
			t.Errorf("a second login of another process: %q after %q", again, first)
		}
		if _, err := w.e.Logout(t.Context(), w.a); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := token(w.a); got != "" {
			t.Errorf("%q after another process logged out", got)
		}
	})
}

// A store that hangs holds up nobody whose login is known, however many ask.
func TestStoreHangsWhileLooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.login()
		w.mustCall()
		hung := &mute{Store: w.store}
		w.e.env.Store = hung
		time.Sleep(2 * time.Second)
		began := time.Now()
		for range 10 {
			w.mustCall()
		}
		if took := time.Since(began); took > storeWait {
			t.Errorf("ten calls took %s with a store that does not answer, want %s at most", took, storeWait)
		}
	})
}

// mute is a store that never says what it has.
type mute struct{ vault.Store }

func (m *mute) Versions(ctx context.Context, _, _ string) (map[string]int64, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
