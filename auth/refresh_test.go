package auth

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// A request each minute of a day: the token is renewed once an hour, before its end,
// and no request ever fails.
func TestRefreshByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.login()
		for range 24 * 60 {
			w.mustCall()
			time.Sleep(time.Minute)
		}
		if n := w.tokens("refresh_token"); n < 24 || n > 27 {
			t.Errorf("%d refreshes in 24 hours", n)
		}
		for _, e := range w.as.Requests(fake.EventToken, "refresh_token") {
			if e.Detail != "ok" || e.Param("resource") != mcpURL {
				t.Errorf("refresh: %s, resource %q", e.Detail, e.Param("resource"))
			}
		}
	})
}

// storm lets n goroutines call at once.
func (w *world) storm(n int) {
	w.t.Helper()
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for range n {
		wg.Go(func() {
			if err := w.call(w.t.Context()); err != nil {
				failed.Store(&err)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		w.t.Fatalf("a call failed: %v", *err)
	}
}

// Half of the rounds expire by the clock, half by a 401; the server ends the grant if
// a refresh token is used twice.
func TestOneRefreshForManyGoroutines(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	const rounds = 20
	for round := range rounds {
		w.as.Expire()
		if round%2 == 0 {
			w.edit(func(g *grants.Grant) { g.Expires = time.Now().Add(-time.Second) })
		}
		w.storm(16)
		if n := w.tokens("refresh_token"); n != round+1 {
			t.Fatalf("%d refreshes after round %d", n, round+1)
		}
	}
}

// Engines that share a store are like processes that do.
func TestOneRefreshForManyEngines(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	type user struct {
		e *Engine
		c *http.Client
	}
	var users []user
	for range 6 {
		e := New(w.store, &Options{RoundTripper: w.net})
		defer func() { _ = e.Close() }()
		users = append(users, user{e, &http.Client{Transport: e.Transport(w.net)}})
	}
	const rounds = 15
	for round := range rounds {
		w.as.Expire()
		if round%2 == 0 {
			w.edit(func(g *grants.Grant) { g.Expires = time.Now().Add(-time.Second) })
		}
		var wg sync.WaitGroup
		for _, u := range users {
			for range 3 {
				wg.Go(func() {
					if err := callAs(t.Context(), u.e, u.c, w.a, w.srv); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
		}
		wg.Wait()
		if n := w.tokens("refresh_token"); n != round+1 {
			t.Fatalf("%d refreshes after round %d", n, round+1)
		}
	}
}

func TestRefreshKeepsTheOldToken(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"no-rotate"}}, nil)
	w.login()
	before := w.grant()
	w.as.Expire()
	w.mustCall()
	after := w.grant()
	if !after.Refresh.Equal(before.Refresh.Secret) || after.Access.Equal(before.Access.Secret) || after.Generation != before.Generation+1 {
		t.Errorf("grant %v after %v", after, before)
	}
}

// An answer that was lost is asked for again with the old refresh token, which
// servers accept for a while.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Grace: 10 * time.Second}, nil)
	w.login()
	w.as.Expire()
	w.as.Set("drop-after-commit;times=1;on=refresh_token")
	w.mustCall()
	if n := w.tokens("refresh_token"); n != 2 {
		t.Errorf("%d refreshes, want the lost one and its repeat", n)
	}
	w.mustCall()
}

// Without grace at the server the login is gone; it says so, and the record stays.
func TestLostAnswerWithoutGrace(t *testing.T) {
	w := newWorld(t, nil, nil)
	var bus event.Bus[event.Event]
	sub := bus.Subscribe(0)
	defer sub.Close()
	w.e.env.Options.Events = &bus
	w.login()
	w.as.Expire()
	w.as.Set("drop-after-commit;times=1;on=refresh_token")
	wantErr(t, w.call(t.Context()), ErrNeedsLogin, "has ended the login", "usher login srv")
	if g := w.grant(); g == nil || g.Ended == nil || g.Refresh.IsZero() {
		t.Errorf("the record was not kept: %v", g)
	}
	var changes []string
	for range 2 {
		ev, _, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, ev.(event.GrantChanged).Change)
	}
	if changes[0] != event.GrantStored || changes[1] != event.GrantLost {
		t.Errorf("events %v", changes)
	}
	before := w.tokens("")
	wantErr(t, w.call(t.Context()), ErrNeedsLogin)
	if w.tokens("") != before {
		t.Error("an ended grant was tried again")
	}
	w.login()
	w.mustCall()
}

// Of two that are refused, the one that lost must not end what the other one wrote.
func TestLoserErasesNothing(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	w.as.Expire()
	w.as.Intercept("token", func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		// While the server refuses, somebody else logs in again.
		w.as.Intercept("token", nil)
		other := New(w.store, &Options{RoundTripper: w.net})
		defer func() { _ = other.Close() }()
		p, err := other.Begin(r.Context(), w.a, w.srv, nil)
		if err == nil {
			_, err = other.Complete(r.Context(), w.answer(p))
		}
		if err != nil {
			t.Errorf("login beside the refresh: %v", err)
		}
		w.as.Set("token-error=invalid_grant;times=1;on=refresh_token")
		next.ServeHTTP(rw, r)
	})
	w.mustCall()
	if g := w.grant(); g.Ended != nil || g.Generation != 2 {
		t.Errorf("the winner's grant: generation %d, ended %v", g.Generation, g.Ended)
	}
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &fake.AuthOptions{TTL: time.Minute}, nil)
		w.login()
		w.as.Set("token-status=503;on=refresh_token")
		time.Sleep(2 * time.Minute)
		for range 720 { // an hour of one call every five seconds
			_ = w.call(t.Context())
			time.Sleep(5 * time.Second)
		}
		n := w.tokens("refresh_token")
		if n < 12 || n > 25 {
			t.Errorf("%d requests to a broken server in an hour", n)
		}
		var u *UnavailableError
		if err := w.call(t.Context()); !errors.As(err, &u) || u.RetryAfter <= 0 || u.RetryAfter > maxBackoff {
			t.Errorf("error %v", err)
		}
		w.as.Clear("token-status")
		time.Sleep(maxBackoff)
		w.mustCall()
		if rec, err := w.store.Get(t.Context(), w.failuresKey()); !errors.Is(err, vault.ErrNotFound) {
			t.Errorf("failures are remembered after a success: %s, %v", rec.Data, err)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &fake.AuthOptions{TTL: time.Minute}, nil)
		w.login()
		time.Sleep(2 * time.Minute)
		asked := 0
		w.as.Intercept("token", func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
			asked++
			rw.Header().Set("Retry-After", "120")
			rw.WriteHeader(http.StatusTooManyRequests)
		})
		for range 119 {
			_ = w.call(t.Context())
			time.Sleep(time.Second)
		}
		if asked != 1 {
			t.Errorf("asked %d times within Retry-After", asked)
		}
	})
}

// A slow server is waited for as long as it takes, not as long as a caller does, and
// a token that is still good is used meanwhile.
func TestSlowTokenEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.login()
		w.as.Set("token-slow=20000;on=refresh_token;times=1")
		time.Sleep(56 * time.Minute)
		start := time.Now()
		w.mustCall()
		if waited := time.Since(start); waited != softWait {
			t.Errorf("a call with a good token waited %v", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_ = w.call(ctx) // leaves early
		time.Sleep(time.Minute)
		if g := w.grant(); g.Generation != 2 {
			t.Errorf("the answer was not stored: generation %d", g.Generation)
		}
		if n := w.tokens("refresh_token"); n != 1 {
			t.Errorf("%d refreshes", n)
		}
	})
}

// A refresh token is not spent while its successor could not be kept.
func TestStoreIsCheckedFirst(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	s := &sickStore{Store: w.store}
	e := New(s, &Options{RoundTripper: w.net})
	defer func() { _ = e.Close() }()
	w.as.Expire()
	s.notReady.Store(true)
	c := &http.Client{Transport: e.Transport(w.net)}
	wantErr(t, callAs(t.Context(), e, c, w.a, w.srv), ErrUnavailable, "not spent")
	if n := w.tokens("refresh_token"); n != 0 {
		t.Errorf("%d refreshes", n)
	}
	s.notReady.Store(false)
	if err := callAs(t.Context(), e, c, w.a, w.srv); err != nil {
		t.Error(err)
	}
}

// What the store does not take after all is kept in memory, used, and saved later.
func TestStoreFailsAfterRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.login()
		s := &sickStore{Store: w.store}
		e := New(s, &Options{RoundTripper: w.net})
		defer func() { _ = e.Close() }()
		c := &http.Client{Transport: e.Transport(w.net)}
		w.as.Expire()
		s.noGrants.Store(true)
		for range 5 {
			if err := callAs(t.Context(), e, c, w.a, w.srv); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		if g := w.grant(); g.Generation != 1 {
			t.Fatalf("generation %d in a store that takes nothing", g.Generation)
		}
		s.noGrants.Store(false)
		if err := callAs(t.Context(), e, c, w.a, w.srv); err != nil {
			t.Fatal(err)
		}
		if g := w.grant(); g.Generation != 2 || w.tokens("refresh_token") != 1 {
			t.Errorf("generation %d after %d refreshes", g.Generation, w.tokens("refresh_token"))
		}
	})
}

// A store that cannot be reached does not stop calls with live tokens.
func TestStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.login()
		s := &sickStore{Store: w.store}
		e := New(s, &Options{RoundTripper: w.net})
		defer func() { _ = e.Close() }()
		c := &http.Client{Transport: e.Transport(w.net)}
		if err := callAs(t.Context(), e, c, w.a, w.srv); err != nil {
			t.Fatal(err)
		}
		s.down.Store(true)
		time.Sleep(10 * time.Minute)
		if err := callAs(t.Context(), e, c, w.a, w.srv); err != nil {
			t.Errorf("with the store down: %v", err)
		}
	})
}
