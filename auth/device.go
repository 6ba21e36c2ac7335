package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

const (
	slowDown    = 5 * time.Second
	deviceLease = time.Minute
)

// activePolls stops an older poll of an account when a newer one starts.
type activePolls struct {
	mu sync.Mutex // guards by
	by map[Account]*poll
}

type poll struct{ stop context.CancelCauseFunc }

func (b *activePolls) replace(a Account, p *poll) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.by[a]; old != nil {
		old.stop(ErrReplaced)
	}
	if b.by == nil {
		b.by = map[Account]*poll{}
	}
	b.by[a] = p
}

func (b *activePolls) remove(a Account, p *poll) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[a] == p {
		delete(b.by, a)
	}
}

// deviceLogins logs in with a code on another screen.
type deviceLogins struct {
	*grants.Env

	clients   *registrar
	pendings  *pendingLogins
	completer *completer
	polls     activePolls
}

// BeginDevice starts a login with a code on another screen (RFC 8628). Follow it
// with [Engine.PollDevice], in this process or another one. A login of the same
// account that was begun earlier ends.
func (e *Engine) BeginDevice(ctx context.Context, a Account, srv config.Server, options *LoginOptions) (*Pending, error) {
	a = a.Normal()
	b, err := e.preparer.prepare(ctx, a, srv, options)
	if err != nil {
		return nil, err
	}
	defer b.web.Close()
	if b.p.Metadata.DeviceEndpoint == "" {
		return nil, fmt.Errorf("log in to %s with a device code: %w: the authorization server %s has no device_authorization_endpoint; log in with a browser or by paste-back",
			a, ErrNoFlow, oauth.HostOf(b.p.Binding()))
	}
	if b.to, err = e.callbacks.redirectFor(ctx, srv, LoginOptions{Redirect: b.opt.Redirect}); err != nil {
		return nil, err
	}
	p, err := e.devices.request(ctx, b, b.opt.FreshClient)
	if oauth.RefusedWith(err, "invalid_client") && b.client.Source == oauth.SourceDynamic {
		// The server has forgotten the client: register once more.
		p, err = e.devices.request(ctx, b, true)
	}
	if err != nil {
		return nil, fmt.Errorf("log in to %s with a device code: %w", a, withTargetHint(err, a, b.p.Resource))
	}
	if err := e.grants.Steps.Count(ctx, a, b.step); err != nil {
		return nil, err
	}
	e.pendings.dropDevices(ctx, a)
	if err := e.pendings.admit(ctx, p); err != nil {
		return nil, err
	}
	if err := e.pendings.put(ctx, p); err != nil {
		return nil, err
	}
	return p.view(), nil
}

// request gets a code from the server.
func (dl *deviceLogins) request(ctx context.Context, b *preparedLogin, fresh bool) (*pending, error) {
	var err error
	if b.client, err = dl.clients.identify(ctx, b.web, b.p, oauth.SettingsOf(b.srv), &b.to, fresh); err != nil {
		return nil, err
	}
	p := b.record(FlowDevice)
	if _, err := p.dpop(oauth.SettingsOf(b.srv)); err != nil {
		return nil, err
	}
	if p.Device, err = b.web.AuthorizeDevice(ctx, b.p, b.client, b.scopes); err != nil {
		return nil, err
	}
	if p.Device.Life > 0 {
		p.Expires = p.Created.Add(p.Device.Life)
	}
	return p, nil
}

// dropDevices forgets older device logins of an account.
func (pl *pendingLogins) dropDevices(ctx context.Context, a Account) {
	recs, _ := pl.Store.List(ctx, vault.KindPending, vault.Local) // they run out by themselves if this fails
	for _, rec := range recs {
		var p pending
		if json.Unmarshal(rec.Data, &p) == nil && p.Flow == FlowDevice && p.account() == a {
			_ = pl.Store.Delete(ctx, rec.Key, rec.Version)
		}
	}
}

// PollDevice asks the authorization server, at the pace it wants, whether the
// person has agreed, until it says yes or no, the code is too old, or ctx ends.
// Failures of the network end nothing.
func (e *Engine) PollDevice(ctx context.Context, state string) (*Login, error) {
	p, err := e.pendings.find(ctx, state)
	if err != nil {
		return nil, err
	}
	if p.Flow != FlowDevice || p.Device == nil {
		return nil, ErrUnknownState
	}
	a := p.account()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(e.env.Life, func() { cancel(ErrClosed) })
	defer stop()
	me := &poll{stop: cancel}
	e.devices.polls.replace(a, me)
	defer e.devices.polls.remove(a, me)
	var login *Login
	err = vault.Hold(ctx, e.env.Store, "device/"+stateName(state), deviceLease, func(ctx context.Context, _ vault.Lease) error {
		login, err = e.devices.pollUntil(ctx, p)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("login to %s: %w", a, context.Cause(ctx))
	}
	if err != nil {
		logFailure(e.env.Log, a, err)
	}
	return login, err
}

// pollUntil polls until there is a result.
func (dl *deviceLogins) pollUntil(ctx context.Context, p *pending) (*Login, error) {
	a, interval := p.account(), p.Device.Interval
	w := dl.Client(p.Bounds)
	defer w.Close()
	for {
		timer := time.NewTimer(interval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		if !time.Now().Before(p.Expires) {
			dl.pendings.drop(ctx, p)
			return nil, fmt.Errorf("login to %s: %w; ask for a new code", a, ErrExpired)
		}
		if _, err := dl.pendings.find(ctx, p.State.Reveal()); errors.Is(err, ErrUnknownState) {
			return nil, fmt.Errorf("login to %s: %w", a, ErrReplaced)
		}
		login, err := dl.pollOnce(ctx, w, p)
		switch {
		case err == nil:
			return login, nil
		case oauth.RefusedWith(err, "authorization_pending"):
		case oauth.RefusedWith(err, "slow_down"):
			interval += slowDown
		case errors.Is(err, ErrUnavailable):
			var te *TokenError
			if errors.As(err, &te) && te.RetryAfter > interval {
				interval = min(te.RetryAfter, time.Minute)
			}
			dl.Log.Info("the authorization server does not answer; asking again", "account", a.String(), "error", err)
		default:
			dl.pendings.drop(ctx, p)
			return nil, pollError(a, err)
		}
	}
}

// pollOnce asks once. A yes is stored even if the caller has gone.
func (dl *deviceLogins) pollOnce(ctx context.Context, w *oauth.Client, p *pending) (*Login, error) {
	if err := dl.Store.Ready(ctx, grants.Room); err != nil {
		return nil, &UnavailableError{Account: p.account(), Reason: "the login cannot be stored", Err: err}
	}
	key, err := oauth.LoadDPoPKey(p.DPoP.Secret)
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {oauth.GrantTypeDevice}, "device_code": {p.Device.Code.Reveal()}}
	if p.Resource != "" {
		form.Set("resource", p.Resource)
	}
	return grants.Detached(ctx, dl.Env, completeLimit, func(ctx context.Context) (*Login, error) {
		answer, err := w.RequestToken(ctx, oauth.TokenRequest{Endpoint: p.TokenEndpoint, Form: form, Credentials: p.Client, DPoP: key})
		if err != nil {
			return nil, err
		}
		login, err := dl.completer.storeGrant(ctx, p, answer)
		if err == nil {
			dl.pendings.drop(ctx, p)
			dl.pendings.waiting.finish(p.State.Reveal(), outcome{login, nil})
		}
		return login, err
	})
}

// pollError puts the end of a device login into words.
func pollError(a Account, err error) error {
	switch {
	case oauth.RefusedWith(err, "access_denied"):
		return &DeniedError{Account: a, Code: "access_denied", Hint: "ask for a new code to try again"}
	case oauth.RefusedWith(err, "expired_token"):
		return fmt.Errorf("login to %s: %w; ask for a new code", a, ErrExpired)
	}
	return fmt.Errorf("login to %s with a device code: %w", a, err)
}
