package oidc

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/auth"
)

// TestProvider runs everything against one authorization server.
func TestProvider(t *testing.T) {
	p := Start(t)
	t.Run("all", func(t *testing.T) { // so that the server outlives parallel tests
		for name, test := range map[string]func(*testing.T, *world){
			"login": testLogin, "two accounts": testTwoAccounts, "denied": testDenied,
			"renewal": testRenewal, "stolen refresh token": testStolen,
			"device": testDevice, "device denied": testDeviceDenied, "logout": testLogout,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, newWorld(t, p))
			})
		}
	})
}

func testLogin(t *testing.T, w *world) {
	if err := w.call(t.Context(), w.a); !errors.Is(err, auth.ErrNeedsLogin) {
		t.Fatalf("call before the login: %v, want ErrNeedsLogin", err)
	}
	login := w.login()
	if login.Issuer != w.p.Issuer || login.Flow != auth.FlowCode || !login.CanRefresh || lacks(login) || login.Expires.IsZero() {
		t.Errorf("login %+v", login)
	}
	w.mustCall(w.a)
	want := Verdict{Active: true, Client: w.clientID(w.a), Scope: "tools:read tools:write", Audience: w.srv.URL, Subject: "ada"}
	if diff := cmp.Diff(want, w.verdict(w.token())); diff != "" {
		t.Errorf("the token (-want +got):\n%s", diff)
	}
}

// lacks reports whether a login has less than was asked for. This server does not
// list offline_access among the scopes of a token, though it grants it: CanRefresh.
func lacks(l *auth.Login) bool {
	return slices.ContainsFunc(l.Missing, func(s string) bool { return s != "offline_access" })
}

// testTwoAccounts logs in a second account through the loopback listener: the
// registration is shared although its redirect address has another port.
func testTwoAccounts(t *testing.T, w *world) {
	w.login()
	work := auth.Account{Server: "notes", Label: "work"}
	b := newBrowser(t, w.client, w.p.Issuer)
	b.fill["login"] = "grace"
	open := auth.NewInteractive(func(ctx context.Context, page string) error {
		away, _, err := b.visit(page)
		if err != nil {
			return err
		}
		resp, err := w.client.Get(away.String())
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	if _, err := w.e.Browser(t.Context(), open, work, w.srv, nil, nil); err != nil {
		t.Fatalf("login through the listener: %v", err)
	}
	w.mustCall(w.a)
	w.mustCall(work)
	if one, other := w.clientID(w.a), w.clientID(work); one != other {
		t.Errorf("clients %s and %s, want one", one, other)
	}
	if got := w.verdict(w.token()).Subject; got != "ada" {
		t.Errorf("the first account is %q now", got)
	}
	out, err := w.e.Logout(t.Context(), work)
	if err != nil || out.ClientRemoved || !out.Revoked {
		t.Errorf("logout of one account: %+v, %v; want it revoked and the client kept", out, err)
	}
	w.mustCall(w.a)
}

func testDenied(t *testing.T, w *world) {
	pending, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, w.client, w.p.Issuer)
	b.deny = true
	_, err = w.e.Complete(t.Context(), w.answer(pending, b))
	var denied *auth.DeniedError
	if !errors.As(err, &denied) || denied.Code != "access_denied" {
		t.Errorf("complete: %v, want access_denied", err)
	}
}

// expire makes the access token useless and leaves the login as it is.
func (w *world) expire() (token string) {
	w.t.Helper()
	token = w.token()
	resp, err := w.client.Post(w.p.Issuer+"/expire/"+token, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		w.t.Fatalf("expire the access token: HTTP %d", resp.StatusCode)
	}
	return token
}

// refreshes lists the refresh tokens that were traded, in order.
func (w *world) refreshes(client string) (traded []string) {
	for _, e := range w.p.all("granted", client) {
		if e.Grant == "refresh_token" {
			traded = append(traded, e.Refresh)
		}
	}
	return traded
}

// issued is the refresh token that the server issued last, after one renewal.
func (w *world) issued(client string) string {
	w.t.Helper()
	return awaitCount(w.t, w.p, 2, func() (all []string) {
		for _, e := range w.p.all("issued", client) {
			if !slices.Contains(all, e.Refresh) {
				all = append(all, e.Refresh)
			}
		}
		return all
	})[1]
}

func testRenewal(t *testing.T, w *world) {
	w.login()
	w.mustCall(w.a)
	client, seen := w.clientID(w.a), map[string]bool{}
	for range 3 {
		old := w.expire()
		w.mustCall(w.a) // refused, renewed, taken
		if now := w.token(); now == old || !w.verdict(now).Active || w.verdict(old).Active {
			t.Fatalf("the token was not replaced by a good one")
		}
	}
	traded := awaitCount(t, w.p, 3, func() []string { return w.refreshes(client) })
	for _, r := range traded {
		if r == "" || seen[r] {
			t.Errorf("a refresh token was used twice")
		}
		seen[r] = true
	}
	if got := w.p.all("refused", client); len(got) > 0 {
		t.Errorf("the authorization server refused %+v", got)
	}
	if s, err := w.e.Status(t.Context(), w.a); err != nil || s.State != auth.StateOK || s.Trouble != "" {
		t.Errorf("status %+v, %v", s, err)
	}
}

// testStolen uses a refresh token a second time, as a thief would: the server ends
// the whole login, and usher asks for a new one and does not try again and again.
func testStolen(t *testing.T, w *world) {
	w.login()
	w.mustCall(w.a)
	client := w.clientID(w.a)
	w.expire()
	w.mustCall(w.a)
	old := awaitCount(t, w.p, 1, func() []string { return w.refreshes(client) })[0]
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old}}
	if status, code := w.p.post(t, w.client, "/token", client, form); code != "invalid_grant" {
		t.Fatalf("the used refresh token: HTTP %d %q, want invalid_grant", status, code)
	}
	for range 2 {
		err := w.call(t.Context(), w.a)
		var needs *auth.NeedsLoginError
		if !errors.As(err, &needs) || needs.Command != "usher login notes" {
			t.Fatalf("call: %v, want a login to be needed", err)
		}
	}
	if got := w.refreshes(client); len(got) != 1 {
		t.Errorf("%d renewals, want the one before the theft", len(got))
	}
	w.login()
	w.mustCall(w.a)
}

func testDevice(t *testing.T, w *world) {
	pending, err := w.e.BeginDevice(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		login *auth.Login
		err   error
	}
	done := make(chan result, 1)
	go func() {
		login, err := w.e.PollDevice(t.Context(), pending.State)
		done <- result{login, err}
	}()
	// The person takes longer than the first question.
	if e := w.p.await(t, "refused", w.pendingClient()); e.Error != "authorization_pending" {
		t.Fatalf("the first poll was answered with %q", e.Error)
	}
	b := newBrowser(t, w.client, w.p.Issuer)
	b.fill["user_code"] = pending.Device.UserCode
	if away, page, err := b.visit(pending.Device.VerificationURI); err != nil || !strings.Contains(page, "Sign-in Success") {
		t.Fatalf("the pages lead to %v, %v; the last page: %s", away, err, page)
	}
	got := <-done
	if got.err != nil {
		t.Fatalf("poll: %v", got.err)
	}
	if got.login.Flow != auth.FlowDevice || !got.login.CanRefresh || lacks(got.login) {
		t.Errorf("login %+v", got.login)
	}
	w.mustCall(w.a)
	if v := w.verdict(w.token()); v.Subject != "ada" || v.Audience != w.srv.URL {
		t.Errorf("the token: %+v", v)
	}
	w.expire()
	w.mustCall(w.a)
}

func testDeviceDenied(t *testing.T, w *world) {
	pending, err := w.e.BeginDevice(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, w.client, w.p.Issuer)
	b.deny = true
	if _, _, err := b.visit(pending.Device.Complete); err != nil {
		t.Fatal(err)
	}
	if _, err := w.e.PollDevice(t.Context(), pending.State); !errors.Is(err, auth.ErrDenied) {
		t.Errorf("poll: %v, want ErrDenied", err)
	}
}

func testLogout(t *testing.T, w *world) {
	w.login()
	w.mustCall(w.a)
	client := w.clientID(w.a)
	w.expire()
	w.mustCall(w.a)
	access, refresh := w.token(), w.issued(client)
	if !w.verdict(access).Active || !w.verdict(refresh).Active {
		t.Fatal("a token is not good before the logout")
	}
	out, err := w.e.Logout(t.Context(), w.a)
	if err != nil || !out.Revoked || !out.ClientRemoved || len(out.Problems) > 0 {
		t.Fatalf("logout: %+v, %v", out, err)
	}
	if w.verdict(access).Active || w.verdict(refresh).Active {
		t.Error("a token is still good after the logout")
	}
	w.p.await(t, "deregistered", client)
	if err := w.call(t.Context(), w.a); !errors.Is(err, auth.ErrNeedsLogin) {
		t.Errorf("call after the logout: %v, want ErrNeedsLogin", err)
	}
}
