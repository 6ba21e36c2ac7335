package auth

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// outage answers every token with 401 while it is on.
func (w *world) outage() (on *bool) {
	on = new(bool)
	w.net.add(mcpHost, w.as.Protect(w.prot, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if *on {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		okHandler(rw, r)
	})))
	return on
}

// A server that refused everything for a while, a fresh token too, does not keep that
// token from being renewed when it ends.
func TestVerdictIsForgiven(t *testing.T) {
	for name, between := range map[string]bool{"accepted meanwhile": true, "not used meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, &fake.AuthOptions{Switches: []string{"expires-in=null"}}, nil)
				out := w.outage()
				w.login()
				*out = true
				if err := w.call(t.Context()); err == nil {
					t.Fatal("the call worked")
				}
				wantErr(t, w.call(t.Context()), ErrNeedsLogin, "refuses it")
				*out = false
				time.Sleep(verdictLife + time.Second)
				if between {
					w.mustCall()
				}
				time.Sleep(8 * time.Hour)
				w.as.Expire()
				w.mustCall()
			})
		})
	}
}

// A verdict is about one login, not about the next one that happens to have its number.
func TestVerdictIsOfOneLogin(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"no-refresh"}}, nil)
	w.login()
	w.as.Expire()
	wantErr(t, w.call(t.Context()), ErrNeedsLogin, "no refresh token")
	other := *w
	other.e = New(w.store, &Options{RoundTripper: w.net})
	defer func() { _ = other.e.Close() }()
	if _, err := other.e.Logout(t.Context(), w.a); err != nil {
		t.Fatal(err)
	}
	other.login()
	w.e.grants.Grants.Remember(w.a.Normal(), w.grant()) // as it is noticed within a second
	w.mustCall()
}

// Whoever comes to wait when the time is up hears that it is, and not that somebody
// said no.
func TestWaitTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(pendingLife + time.Minute)
		_, err = w.e.Wait(t.Context(), p.State)
		wantErr(t, err, ErrExpired, "log in again")
	})
}

// A person who began twice, and finishes the first page, is done.
func TestWaitWhileAnOlderPageIsFinished(t *testing.T) {
	w := newWorld(t, nil, nil)
	first, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	again := New(w.store, &Options{RoundTripper: w.net}) // the first was interrupted
	defer func() { _ = again.Close() }()
	second, err := again.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	wider, err := again.Begin(t.Context(), w.a, w.srv, &LoginOptions{Scopes: []string{"more"}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := again.Wait(t.Context(), second.State)
		ended <- err
	}()
	if _, err := again.Complete(t.Context(), w.answer(first)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it still waits although the account is logged in")
	}
	if left, err := again.Pendings(t.Context(), ""); err != nil || len(left) != 1 || left[0].State != wider.State {
		t.Errorf("%d logins wait, %v; want the one that asks for more", len(left), err)
	}
}

// A store that goes away just when another process has finished a login leaves open how
// that ended.
func TestStoreGoesWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
		if err != nil {
			t.Fatal(err)
		}
		sick := &sickStore{Store: w.store}
		other := New(sick, &Options{RoundTripper: w.net})
		defer func() { _ = other.Close() }()
		ended := make(chan error, 1)
		go func() {
			_, err := other.Wait(t.Context(), p.State)
			ended <- err
		}()
		synctest.Wait()
		if _, err := w.consent(p); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		sick.down.Store(true)
		time.Sleep(time.Second)
		sick.down.Store(false)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Tokens grow old while a laptop sleeps, which the monotonic clock does not notice.
func TestLifeByTheWall(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login()
	g, err := w.e.grants.Grants.Current(t.Context(), w.a.Normal())
	if err != nil || g.Expires != g.Expires.Round(0) || g.Obtained != g.Obtained.Round(0) {
		t.Errorf("obtained %v, expires %v, %v", g.Obtained, g.Expires, err)
	}
}

// A clock that was ahead when a renewal failed, which it fails for, does not put the
// next one off until that time has come.
func TestBackoffOfAWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.login()
		w.as.Expire()
		w.as.Set("token-status")
		if err := w.call(t.Context()); err == nil {
			t.Fatal("the call worked")
		}
		w.as.Clear("token-status")
		ahead := map[string]any{"failures": 1, "reason": "the certificate is not valid yet", "not_before": time.Now().Add(400 * 24 * time.Hour)}
		data, err := json.Marshal(ahead)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := vault.Update(t.Context(), w.store, w.failuresKey(), func([]byte) ([]byte, error) { return data, nil }); err != nil {
			t.Fatal(err)
		}
		w.mustCall()
	})
}

// Some servers say with another status than 401 that a token is no good.
func TestInvalidTokenWithAnotherStatus(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusForbidden} {
		w := newWorld(t, nil, nil)
		protected := w.as.Protect(w.prot, okHandler)
		w.net.add(mcpHost, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			protected.ServeHTTP(&otherStatus{rw, status}, r)
		}))
		w.login()
		w.as.Expire()
		if err := w.call(t.Context()); err != nil || w.tokens("refresh_token") != 1 {
			t.Errorf("HTTP %d: %v, %d refreshes", status, err, w.tokens("refresh_token"))
		}
	}
}

// otherStatus answers with another status in place of 401.
type otherStatus struct {
	http.ResponseWriter
	status int
}

func (o *otherStatus) WriteHeader(status int) {
	if status == http.StatusUnauthorized && strings.Contains(o.Header().Get("WWW-Authenticate"), "invalid_token") {
		status = o.status
	}
	o.ResponseWriter.WriteHeader(status)
}

// Clocks of replicas differ: who began a login and who finished it need not agree on
// what came first.
func TestWaitWithAClockAhead(t *testing.T) {
	w := newWorld(t, nil, nil)
	ahead := New(w.store, &Options{RoundTripper: w.net})
	defer func() { _ = ahead.Close() }()
	p, err := ahead.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	later := func(old []byte) ([]byte, error) {
		var rec pending
		err := json.Unmarshal(old, &rec)
		rec.Created = rec.Created.Add(time.Minute)
		data, _ := json.Marshal(rec)
		return data, err
	}
	if _, err := vault.Update(t.Context(), w.store, pendingKey(p.State), later); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := ahead.Wait(t.Context(), p.State)
		ended <- err
	}()
	if _, err := w.consent(p); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A server that says that it cannot right now has not refused.
func TestExchangeNotRightNow(t *testing.T) {
	w := newWorld(t, nil, nil)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	cb := w.answer(p)
	w.as.Set("token-error=temporarily_unavailable")
	_, err = w.e.Complete(t.Context(), cb)
	wantErr(t, err, ErrUnavailable)
	w.as.Clear("token-error")
	if _, err := w.e.Complete(t.Context(), cb); err != nil {
		t.Error(err)
	}
}
