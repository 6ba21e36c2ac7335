package auth

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// fillPending writes logins of other accounts down, as earlier ones would be.
func (w *world) fillPending(n int, principal func(i int) string) {
	w.t.Helper()
	for i := range n {
		now := time.Now().Add(time.Duration(i-n) * time.Microsecond)
		p := &pending{Principal: principal(i), Server: "other", Label: fmt.Sprint(i), Flow: FlowCode, State: oauth.NewStoredSecret(newState()), Created: now, Expires: now.Add(pendingLife)}
		if err := w.e.pendings.put(w.t.Context(), p); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) pendings(principal string) []Pending {
	w.t.Helper()
	all, err := w.e.Pendings(w.t.Context(), principal)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// An agent that begins logins again and again drops its own oldest ones, never those of
// another principal; who waits for one that was dropped is told.
func TestPendingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.fillPending(3, func(int) string { return "bob" })
		w.a.Principal = "alice"
		var first *Pending
		for range 3 * limit.PendingPerAccount {
			p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = p
			}
			time.Sleep(time.Second)
		}
		if n := len(w.pendings("alice")); n != limit.PendingPerAccount {
			t.Errorf("%d logins of one account wait, want %d", n, limit.PendingPerAccount)
		}
		_, err := w.e.Wait(t.Context(), first.State)
		wantErr(t, err, ErrReplaced)
		_, err = w.consent(first)
		wantErr(t, err, ErrUnknownState)

		w.fillPending(limit.PendingPerPrincipal+50, func(int) string { return "alice" })
		w.a.Label = "new"
		p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(w.pendings("alice")); n != limit.PendingPerPrincipal {
			t.Errorf("%d logins of one principal wait, want %d", n, limit.PendingPerPrincipal)
		}
		if n := len(w.pendings("bob")); n != 3 {
			t.Errorf("%d logins of another principal are left", n)
		}
		if _, err := w.consent(p); err != nil {
			t.Errorf("the newest login: %v", err)
		}
	})
}

// All principals together have a limit, at which a new login is refused. Expired logins
// do not count.
func TestPendingTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		w.fillPending(limit.PendingTotal, func(i int) string { return fmt.Sprint("p", i%7) })
		_, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
		wantErr(t, err, ErrTooMany)
		if n := len(w.pendings("")); n != limit.PendingTotal {
			t.Errorf("%d logins wait", n)
		}
		time.Sleep(pendingLife)
		if _, err := w.e.Begin(t.Context(), w.a, w.srv, nil); err != nil {
			t.Errorf("after the others expired: %v", err)
		}
		if recs, err := w.store.List(t.Context(), vault.KindPending, vault.Local); err != nil || len(recs) != 1 {
			t.Errorf("%d records are left, %v", len(recs), err)
		}
	})
}

// A record that an authorization server makes too large is not written.
func TestLoginIsTooLarge(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.srv.OAuth.AuthorizeParams = map[string]string{"x": strings.Repeat("y", limit.PendingBytes)}
	_, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	wantErr(t, err, ErrTooMany)
	if n := len(w.pendings("")); n != 0 {
		t.Errorf("%d logins were written down", n)
	}
}

// Scopes are limited wherever a server can name them, and comparing them is not
// quadratic.
func TestTooManyScopes(t *testing.T) {
	many := make([]string, 20_000)
	for i := range many {
		many[i] = fmt.Sprint("s", i)
	}
	for name, scopes := range map[string][]string{"count": many[:limit.LoginScopes+1], "length": {strings.Repeat("x", limit.LoginScopeBytes)}} {
		w := newWorld(t, nil, &fake.Protected{NoHint: true, Scopes: scopes})
		_, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
		wantErr(t, err, ErrTooMany, "oauth.scopes")
		w.srv.OAuth.Scopes = []string{"s1"}
		if _, err := w.e.Begin(t.Context(), w.a, w.srv, nil); err != nil {
			t.Errorf("%s: with configured scopes: %v", name, err)
		}
	}
	w := newWorld(t, nil, nil)
	w.login()
	err := w.e.Refused(t.Context(), w.a, w.srv, Challenge{Status: http.StatusForbidden, Error: "insufficient_scope", Scope: strings.Join(many, " "), Operation: "x"})
	wantErr(t, err, ErrStepUp)
}

// Documents and answers that are too large are refused.
func TestDocumentTooLarge(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.net.add(mcpHost, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprintf(rw, `{"resource":%q,"pad":%q}`, mcpURL, strings.Repeat("x", limit.LoginDocument))
	}))
	if _, err := w.e.Begin(t.Context(), w.a, w.srv, nil); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a large document: %v", err)
	}
}

// A server that names another authorization server each time does not fill the store
// with client registrations: the oldest that nobody uses goes.
func TestRegistrationsAreBounded(t *testing.T) {
	w := newWorld(t, nil, nil)
	for i := range limit.Registrations {
		r := oauth.Registration{Client: oauth.Credentials{ID: "c"}, Issuer: fmt.Sprint("https://as", i, ".example"), Group: oauth.ClassLoopback, Created: time.Unix(int64(i), 0)}
		data := mustJSON(t, r)
		if _, err := w.store.Put(t.Context(), registrationKey(r.Issuer, r.Group), data, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.login()
	all, _, err := w.e.clients.list(t.Context())
	if err != nil || len(all) != limit.Registrations {
		t.Fatalf("%d registrations, %v", len(all), err)
	}
	for _, r := range all {
		if r.Created.Equal(time.Unix(0, 0)) {
			t.Error("the oldest is still there")
		}
	}
}

// What is remembered of operations that asked for more permission is limited.
func TestStepUpsAreBounded(t *testing.T) {
	w := newWorld(t, nil, nil)
	for i := range 2 * limit.StepUps {
		s, err := w.e.grants.Steps.Load(t.Context(), w.a)
		if err != nil {
			t.Fatal(err)
		}
		s.Open, s.Operation = true, fmt.Sprint("op", i)
		if err := w.e.grants.Steps.Count(t.Context(), w.a, s); err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.e.grants.Steps.Load(t.Context(), w.a)
	if err != nil || len(s.Tries) != limit.StepUps || s.Tries[fmt.Sprint("op", 2*limit.StepUps-1)].Count != 1 {
		t.Errorf("%d operations are remembered, %v", len(s.Tries), err)
	}
}

// The ends of logins that a process remembers are limited, by count and by age.
func TestOutcomesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &outcomeLog{}
		for i := range 2 * limit.LoginOutcomes {
			b.finish(fmt.Sprint(i), outcome{err: ErrDenied})
		}
		if len(b.by) != limit.LoginOutcomes || len(b.order) != limit.LoginOutcomes {
			t.Errorf("%d ends are remembered, in order %d", len(b.by), len(b.order))
		}
		if _, ok := b.ended(fmt.Sprint(2*limit.LoginOutcomes - 1)); !ok {
			t.Error("the newest is forgotten")
		}
		time.Sleep(3 * pendingLife)
		b.of("new")
		if len(b.by) != 1 || len(b.order) != 1 {
			t.Errorf("%d ends of long ago are remembered", len(b.by))
		}
	})
}

// Parameters of an answer are limited before anything is looked up.
func TestCallbackTooLong(t *testing.T) {
	w := newWorld(t, nil, nil)
	for name, most := range map[string]int{"state": limit.LoginState, "error": limit.LoginState, "code": limit.LoginCode, "iss": limit.LoginCode, "error_description": limit.LoginCode} {
		_, err := oauth.ReadCallback(url.Values{name: {strings.Repeat("x", most+1)}})
		wantErr(t, err, ErrBadPaste, name)
		if _, err := oauth.ReadCallback(url.Values{name: {strings.Repeat("x", most)}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := w.e.Complete(t.Context(), Callback{State: strings.Repeat("x", limit.LoginState+1), Code: vault.NewSecret("c")})
	wantErr(t, err, ErrUnknownState)
}

// Connections that do not ask anything give way to those that do; no more are open than
// the limit says.
func TestCallbackConnections(t *testing.T) {
	w := newWorld(t, nil, nil)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	host := mustURL(t, p.RedirectURI).Host
	var idle []net.Conn
	for range limit.CallbackConnections + 50 {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		idle = append(idle, c)
	}
	if status, _, _ := get(t, "GET", p.RedirectURI+"?state=guess&code=x", nil); status != http.StatusBadRequest {
		t.Errorf("HTTP %d", status)
	}
	// The first ones were closed to make room: a read ends before any timeout.
	_ = idle[0].SetReadDeadline(time.Now().Add(5 * time.Second / 2))
	if _, err := bufio.NewReader(idle[0]).ReadByte(); err == nil || isTimeout(err) {
		t.Errorf("the oldest connection is still open: %v", err)
	}
}

// Answers that are taken in at once are limited; a browser is asked to come back.
func TestCallbackRequests(t *testing.T) {
	w := newWorld(t, nil, nil)
	for range limit.CallbackRequests {
		w.e.completer.slots <- struct{}{}
	}
	ask := func() int {
		rec := httptest.NewRecorder()
		w.e.CallbackHandler(nil).ServeHTTP(rec, httptest.NewRequest("GET", "/callback?state=guess&code=x", nil))
		return rec.Code
	}
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("one too many: HTTP %d", got)
	}
	<-w.e.completer.slots
	if got := ask(); got != http.StatusBadRequest {
		t.Errorf("with room: HTTP %d", got)
	}
	if len(w.e.completer.slots) != limit.CallbackRequests-1 {
		t.Errorf("%d are taken in", len(w.e.completer.slots))
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
