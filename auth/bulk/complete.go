package bulk

import (
	"context"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

// Complete finishes the login with this state, begun by this process or another one.
// Iss is the authorization server's name for itself; empty when the answer has none.
// It is [Driver.Answer] for an answer that is a code.
func (d *Driver) Complete(ctx context.Context, state string, code vault.Secret, iss string) (*auth.Login, error) {
	return d.Answer(ctx, auth.Callback{State: state, Code: code, Iss: iss, HasIss: iss != ""})
}

// Answer finishes a login with what came back from its page. A state counts once:
// afterwards it is unknown. One that nobody waits for is auth.ErrUnknownState and no
// event. An answer from the wrong server (auth.ErrIssuer) and a failure that will pass
// (auth.ErrUnavailable) leave the login as it was; a refusal ends it.
func (d *Driver) Answer(ctx context.Context, cb auth.Callback) (*auth.Login, error) {
	f := d.tracked(cb.State)
	if f != nil && cb.Principal != "" && cb.Principal != f.account.Principal {
		return nil, auth.ErrUnknownState // somebody else's login is nobody's event
	}
	// An answer that names another server is not worth an event: it is either a
	// mistake or an attack, and the engine will refuse it.
	quiet := cb.HasIss && f != nil && f.Issuer != "" && cb.Iss != f.Issuer
	return d.answer(ctx, f, quiet, cb.Code.Reveal(), func() (*auth.Login, error) { return d.engine.Complete(ctx, cb) })
}

// Paste finishes a login with text that a person pasted: the address the browser
// ended at, or the bare code. State is that of the login the person is looking at;
// empty when the text shall say which one it is for. A bare code then is for the only
// login that waits. Text that fits no login leaves all as they were
// (auth.ErrBadPaste).
func (d *Driver) Paste(ctx context.Context, state, text string) (*auth.Login, error) {
	got, err := oauth.ParsePaste(text)
	if err != nil {
		return nil, err
	}
	if got.State == "" && state == "" {
		state = d.only()
	}
	of := state
	if got.State != "" {
		of = got.State
	}
	f := d.tracked(of)
	quiet := got.HasIss && f != nil && f.Issuer != "" && got.Iss != f.Issuer || state != "" && of != state
	return d.answer(ctx, f, quiet, got.Code.Reveal(), func() (*auth.Login, error) { return d.engine.Paste(ctx, state, text) })
}

// only returns the state of the one login that waits for a code; "" when there are
// none or several.
func (d *Driver) only() (state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.rows {
		switch f := d.flows[r.state]; {
		case f == nil || f.Device != nil:
		case state != "":
			return ""
		default:
			state = f.State
		}
	}
	return state
}

func (d *Driver) tracked(state string) *flow {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flows[state]
}

// answer lets the engine deal with an answer and tells what became of the login.
// Answers to one login are dealt with one after the other, so that a forged one
// cannot take the place of the real one.
func (d *Driver) answer(ctx context.Context, f *flow, quiet bool, code string, finish func() (*auth.Login, error)) (*auth.Login, error) {
	if f == nil {
		login, err := guard(finish)
		if err == nil {
			d.arrived(login)
		}
		return login, err
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.tracked(f.State) != f {
		return nil, fmt.Errorf("login to %s: %w", f.account, auth.ErrUnknownState)
	}
	d.hide(f, code)
	if !quiet {
		d.exchange(f)
	}
	login, err := guard(finish)
	switch {
	case err == nil:
		d.end(f, PhaseConnected, about(login))
	case errors.Is(err, auth.ErrRefused) || errors.Is(err, auth.ErrDenied):
		d.end(f, PhaseFailed, d.words(f, err))
	case errors.Is(err, auth.ErrBeingCompleted), errors.Is(err, auth.ErrUnknownState), ctx.Err() != nil:
		// Somebody else is at it, or the engine still is: the watch hears of it.
	case !quiet:
		d.stay(f, d.words(f, err))
	}
	return login, err
}

// exchange says that the code of a login is being exchanged.
func (d *Driver) exchange(f *flow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flows[f.State] == f && !f.exchanging {
		f.exchanging = true
		d.enter(d.rowOf(f.account, ""), PhaseExchanging, "")
	}
}

// stay says that a login waits again, and why its answer was of no use.
func (d *Driver) stay(f *flow, trouble string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flows[f.State] == f {
		f.exchanging, f.trouble = false, trouble
		d.enter(d.rowOf(f.account, ""), PhaseAwaiting, trouble)
	}
}

// arrived tells of a login that this driver did not know of and that it finished.
func (d *Driver) arrived(login *auth.Login) {
	if login == nil {
		return
	}
	a := normal(login.Account)
	d.mu.Lock()
	r := d.rowOf(a, "")
	rest := d.loginsOf(a)
	for _, f := range rest {
		d.drop(f)
	}
	r.issuer = login.Issuer
	d.enter(r, PhaseExchanging, "")
	d.enter(r, PhaseConnected, about(login))
	d.mu.Unlock()
	d.giveUp(rest)
}

// Unattended logs an account in by means that need no person, and tells of it as of
// the others.
func (d *Driver) Unattended(ctx context.Context, t Target, login func(context.Context) (*auth.Login, error)) error {
	d.note(t, PhaseDiscovering, "")
	got, err := guard(func() (*auth.Login, error) { return login(ctx) })
	if err != nil {
		d.note(t, PhaseFailed, redact(err.Error()))
		return err
	}
	d.arrived(got)
	return nil
}

// Cancel gives up a login that waits. It is not an error if it is gone already.
func (d *Driver) Cancel(ctx context.Context, state string) error {
	f := d.tracked(state)
	if f != nil {
		select {
		case f.turn <- struct{}{}: // not while its code is being exchanged
			defer func() { <-f.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
		d.end(f, PhaseFailed, "cancelled")
	}
	_, err := guard(func() (struct{}, error) { return struct{}{}, d.engine.Cancel(ctx, state) })
	if err != nil && f != nil {
		return fmt.Errorf("cancel the login to %s, which runs out by itself: %w", f.account, err)
	}
	return err
}

// Resume takes up all logins that wait, begun by an earlier process or by one that
// runs beside this one, and returns them, newest of an account only. They are watched
// from now on and can be finished like those of Prepare.
func (d *Driver) Resume(ctx context.Context) ([]auth.Pending, error) {
	list, err := guard(func() ([]auth.Pending, error) { return d.engine.Waiting(ctx) })
	if err != nil {
		return nil, fmt.Errorf("look for logins that wait: %w", err)
	}
	newest := map[auth.Account]auth.Pending{}
	for _, p := range list {
		if a := normal(p.Account); p.Created.After(newest[a].Created) {
			newest[a] = p
		}
	}
	var out []auth.Pending
	for _, p := range list {
		show := newest[normal(p.Account)].State == p.State
		if show || p.Device == nil {
			d.track(p, show)
		}
		if show {
			out = append(out, p)
		}
	}
	return out, nil
}
