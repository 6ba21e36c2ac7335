package auth

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/internal/fake"
)

// A paste that does not fit is explained and harms nothing.
func TestPaste(t *testing.T) {
	w := newWorld(t, nil, nil)
	begin := func(label string) (*Pending, *url.URL) {
		p, err := w.e.Begin(t.Context(), Account{Server: "srv", Label: label}, w.srv, nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := w.as.Consent(t.Context(), p.AuthorizeURL)
		if err != nil {
			t.Fatal(err)
		}
		return p, back
	}
	one, oneBack := begin("one")
	two, twoBack := begin("two")
	elsewhere := *oneBack
	elsewhere.Host = "127.0.0.1:1"
	for name, tt := range map[string]struct {
		state, text string
		is          error
		says        string
	}{
		"other login":   {one.State, twoBack.String(), ErrBadPaste, "srv@two"},
		"other address": {one.State, elsewhere.String(), ErrBadPaste, "not the address"},
		"bare code":     {one.State, oneBack.Query().Get("code"), ErrBadPaste, "whole address"},
		"no login":      {"", "abcd-efgh", ErrBadPaste, "which login"},
		"stranger":      {one.State, one.RedirectURI + "?code=abcd&state=unknown", ErrUnknownState, ""},
		"page":          {one.State, one.AuthorizeURL, ErrBadPaste, "login page"},
	} {
		if _, err := w.e.Paste(t.Context(), tt.state, tt.text); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.tokens("") != 0 {
		t.Fatal("a wrong paste was traded")
	}
	if l, err := w.e.Paste(t.Context(), one.State, oneBack.String()); err != nil || l.Account.Label != "one" {
		t.Errorf("right paste: %+v, %v", l, err)
	}
	if l, err := w.e.Paste(t.Context(), "", twoBack.String()); err != nil || l.Account.Label != "two" {
		t.Errorf("paste for any login: %+v, %v", l, err)
	}
	_, err := w.e.Paste(t.Context(), "", twoBack.String())
	wantErr(t, err, ErrUnknownState)
	_ = two
}

func TestPasteBareCode(t *testing.T) {
	w := newWorld(t, &fake.AuthOptions{Switches: []string{"iss-off"}}, nil)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.e.Paste(t.Context(), p.State, w.answer(p).Code.Reveal()+"\n"); err != nil {
		t.Error(err)
	}
}

// A caller that may not finish a login learns nothing of it and exchanges nothing: the
// error is that of a state that nobody knows, also when the login has expired.
func TestPasteFor(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.a.Principal = "alice"
	p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := w.as.Consent(t.Context(), p.AuthorizeURL)
	if err != nil {
		t.Fatal(err)
	}
	of := func(principal string) func(Account) bool {
		return func(a Account) bool { return a.Principal == principal }
	}
	_, unknown := w.e.PasteFor(t.Context(), "", strings.Replace(back.String(), p.State, newState(), 1), of("bob"))
	for _, state := range []string{"", p.State} {
		if _, err := w.e.PasteFor(t.Context(), state, back.String(), of("bob")); err == nil || err.Error() != unknown.Error() {
			t.Errorf("another principal: %v, want %v", err, unknown)
		}
	}
	if w.tokens("") != 0 {
		t.Fatal("the code was exchanged for another principal")
	}
	if l, err := w.e.PasteFor(t.Context(), "", back.String(), of("alice")); err != nil || l.Account.Principal != "alice" {
		t.Errorf("its own principal: %+v, %v", l, err)
	}
}

// The same for a login whose time is up, which otherwise is told by name.
func TestPasteForExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, nil)
		p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(pendingLife)
		text := p.RedirectURI + "?code=abcd&state=" + p.State
		if _, err := w.e.PasteFor(t.Context(), "", text, func(Account) bool { return false }); err != ErrUnknownState { //nolint:errorlint // its text too
			t.Errorf("another principal: %v", err)
		}
		_, err = w.e.PasteFor(t.Context(), "", text, nil)
		wantErr(t, err, ErrExpired)
	})
}
