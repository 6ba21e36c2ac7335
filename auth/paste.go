package auth

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/usher-mcp/usher/auth/oauth"
)

// Paste finishes a login with pasted text. State is that of the login the person is
// looking at; with an empty one, text that names its own login may finish any. Text
// that does not fit leaves all logins as they were ([ErrBadPaste]).
func (e *Engine) Paste(ctx context.Context, state, text string) (*Login, error) {
	return e.PasteFor(ctx, state, text, nil)
}

// PasteFor is [Engine.Paste] for a caller that may finish only some logins: allowed is
// asked about the account of the login before anything else is done with it, and above
// all before the code is exchanged. A login that is not allowed is as unknown as one
// that does not exist. Nil allows all.
func (e *Engine) PasteFor(ctx context.Context, state, text string, allowed func(Account) bool) (*Login, error) {
	got, err := oauth.ParsePaste(text)
	if err != nil {
		return nil, err
	}
	if got.State == "" {
		if state == "" {
			return nil, fmt.Errorf("%w: a bare code does not say which login it is for; paste the whole address", ErrBadPaste)
		}
		got.State = state
	}
	p, err := e.pendings.findAllowed(ctx, got.State, allowed)
	if err != nil {
		return nil, err
	}
	if state != "" && got.State != state {
		return nil, fmt.Errorf("%w: it answers the login to %s", ErrBadPaste, p.account())
	}
	if got.Address != nil && !sameAddress(got.Address, p.RedirectURI) {
		return nil, fmt.Errorf("%w: it is not the address this login comes back to (%s)", ErrBadPaste, p.RedirectURI)
	}
	if got.Address == nil && !got.HasIss && p.IssParameter {
		return nil, fmt.Errorf("%w: this provider names itself in the address, which has to be checked; paste the whole address", ErrBadPaste)
	}
	return e.Complete(ctx, got.Callback)
}

func sameAddress(got *url.URL, want string) bool {
	w, err := url.Parse(want)
	return err == nil && oauth.Origin(got) == oauth.Origin(w) && strings.TrimSuffix(got.Path, "/") == strings.TrimSuffix(w.Path, "/")
}
