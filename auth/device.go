package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/vault"
)

const (
	grantDevice     = "urn:ietf:params:oauth:grant-type:device_code"
	defaultInterval = 5 * time.Second
	slowDown        = 5 * time.Second
	maxDeviceLife   = time.Hour
	deviceLease     = time.Minute
)

// Device is what a person needs for a login with a code on another screen.
type Device struct {
	UserCode string `json:"user_code"`
	// VerificationURI is to be shown in full, beside the code.
	VerificationURI string `json:"verification_uri"`
	// Complete is the same page with the code filled in, for a QR code; empty when
	// the server has none. It is never opened without the code being shown.
	Complete string        `json:"verification_uri_complete,omitempty"`
	Interval time.Duration `json:"interval"`
}

// deviceRecord is the part of a pending login that polls.
type deviceRecord struct {
	Device
	Code kept `json:"device_code"`
}

// pollBook stops an older poll of an account when a newer one starts.
type pollBook struct {
	mu sync.Mutex // guards by
	by map[Account]*poll
}

type poll struct{ stop context.CancelCauseFunc }

func (b *pollBook) replace(a Account, p *poll) {
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

func (b *pollBook) remove(a Account, p *poll) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[a] == p {
		delete(b.by, a)
	}
}

// BeginDevice starts a login with a code on another screen (RFC 8628). Follow it
// with [Engine.PollDevice], in this process or another one. A login of the same
// account that was begun earlier ends.
func (e *Engine) BeginDevice(ctx context.Context, a Account, srv config.Server, options *LoginOptions) (*Pending, error) {
	a = a.normal()
	b, err := e.prepare(ctx, a, srv, options)
	if err != nil {
		return nil, err
	}
	defer b.web.close()
	if b.p.meta.DeviceEndpoint == "" {
		return nil, fmt.Errorf("log in to %s with a device code: %w: the authorization server %s has no device_authorization_endpoint; log in with a browser or by paste-back",
			a, ErrNoFlow, hostOf(b.p.bind()))
	}
	if b.to, err = e.redirectFor(ctx, srv, LoginOptions{Redirect: b.opt.Redirect}); err != nil {
		return nil, err
	}
	p, err := e.askDevice(ctx, b, b.opt.FreshClient)
	if refusedWith(err, "invalid_client") && b.client.Source == SourceDynamic {
		// The server has forgotten the client: register once more.
		p, err = e.askDevice(ctx, b, true)
	}
	if err != nil {
		return nil, fmt.Errorf("log in to %s with a device code: %w", a, withTargetHint(err, a, b.p.resource))
	}
	if err := e.countStep(ctx, a, b.step); err != nil {
		return nil, err
	}
	e.dropDevices(ctx, a)
	if err := e.admitPending(ctx, p); err != nil {
		return nil, err
	}
	if err := e.putPending(ctx, p); err != nil {
		return nil, err
	}
	return p.view(), nil
}

// askDevice gets a code from the server.
func (e *Engine) askDevice(ctx context.Context, b *begun, fresh bool) (*pending, error) {
	var err error
	if b.client, err = e.identify(ctx, b.web, b.p, oauthOf(b.srv), &b.to, fresh); err != nil {
		return nil, err
	}
	p := b.record(FlowDevice)
	if _, err := p.dpop(oauthOf(b.srv)); err != nil {
		return nil, err
	}
	form := url.Values{}
	if b.client.Method == methodBasic {
		form.Set("client_id", b.client.ID) // required here whatever the method
	}
	if len(b.scopes) > 0 {
		form.Set("scope", strings.Join(b.scopes, " "))
	}
	if b.p.resource != "" {
		form.Set("resource", b.p.resource)
	}
	if b.p.audience != "" {
		form.Set("audience", b.p.audience)
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	if err := b.client.authenticate(form, header); err != nil {
		return nil, err
	}
	u, err := checkEndpoint("the device authorization endpoint", b.p.meta.DeviceEndpoint)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	resp, body, err := b.web.exchange(ctx, http.MethodPost, u, header, form.Encode())
	if err != nil {
		return nil, err
	}
	return p, readDevice(resp, body, p, secretsOf(form, header))
}

// readDevice reads the answer of a device authorization endpoint.
func readDevice(resp *http.Response, body []byte, p *pending, secrets []string) error {
	te := &TokenError{Host: clean(resp.Request.URL.Host, 100), Status: resp.StatusCode, RetryAfter: retry.After(resp.Header.Get("Retry-After"))}
	fields, problem := readFields(resp.Header.Get("Content-Type"), body)
	switch code := textField(fields, "error"); {
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		te.Reason = "it cannot serve the request now"
		return te
	case problem != "":
		te.Reason = problem
		return te
	case resp.StatusCode >= 400 || code != "":
		te.refusal(fields, code, secrets)
		return te
	}
	d := &deviceRecord{Code: keep(textField(fields, "device_code"))}
	d.UserCode = clean(textField(fields, "user_code"), 64)
	address := textField(fields, "verification_uri")
	if address == "" {
		address = textField(fields, "verification_url") // as Google spells it
	}
	page, err := pageURL("verification_uri", address)
	if err != nil || d.UserCode == "" || d.Code.IsZero() {
		te.Reason = "the answer has no code, or no page that may be shown"
		return te
	}
	d.VerificationURI = page.String()
	if full, err := pageURL("verification_uri_complete", textField(fields, "verification_uri_complete")); err == nil && origin(full) == origin(page) {
		d.Complete = full.String()
	}
	if d.Interval = readLife(fields["interval"]); d.Interval == 0 {
		d.Interval = defaultInterval
	}
	p.Device = d
	if life := readLife(fields["expires_in"]); life > 0 {
		p.Expires = p.Created.Add(min(life, maxDeviceLife))
	}
	return nil
}

// dropDevices forgets older device logins of an account.
func (e *Engine) dropDevices(ctx context.Context, a Account) {
	recs, _ := e.store.List(ctx, vault.KindPending, vault.Local) // they run out by themselves if this fails
	for _, rec := range recs {
		var p pending
		if json.Unmarshal(rec.Data, &p) == nil && p.Flow == FlowDevice && p.account() == a {
			_ = e.store.Delete(ctx, rec.Key, rec.Version)
		}
	}
}

// PollDevice asks the authorization server, at the pace it wants, whether the
// person has agreed, until it says yes or no, the code is too old, or ctx ends.
// Failures of the network end nothing.
func (e *Engine) PollDevice(ctx context.Context, state string) (*Login, error) {
	p, err := e.findPending(ctx, state)
	if err != nil {
		return nil, err
	}
	if p.Flow != FlowDevice || p.Device == nil {
		return nil, ErrUnknownState
	}
	a := p.account()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(e.life, func() { cancel(ErrClosed) })
	defer stop()
	me := &poll{stop: cancel}
	e.polls.replace(a, me)
	defer e.polls.remove(a, me)
	var login *Login
	err = vault.Hold(ctx, e.store, "device/"+stateName(state), deviceLease, func(ctx context.Context, _ vault.Lease) error {
		login, err = e.pollUntil(ctx, p)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("login to %s: %w", a, context.Cause(ctx))
	}
	if err != nil {
		e.loginFailed(a, err)
	}
	return login, err
}

// pollUntil polls until there is a result.
func (e *Engine) pollUntil(ctx context.Context, p *pending) (*Login, error) {
	a, interval := p.account(), p.Device.Interval
	w := e.web(p.Bounds)
	defer w.close()
	for {
		timer := time.NewTimer(interval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		if !time.Now().Before(p.Expires) {
			e.dropPending(ctx, p)
			return nil, fmt.Errorf("login to %s: %w; run `%s --device` for a new code", a, ErrExpired, a.command())
		}
		if _, err := e.findPending(ctx, p.State.Reveal()); errors.Is(err, ErrUnknownState) {
			return nil, fmt.Errorf("login to %s: %w", a, ErrReplaced)
		}
		login, err := e.pollOnce(ctx, w, p)
		switch {
		case err == nil:
			return login, nil
		case refusedWith(err, "authorization_pending"):
		case refusedWith(err, "slow_down"):
			interval += slowDown
		case errors.Is(err, ErrUnavailable):
			var te *TokenError
			if errors.As(err, &te) && te.RetryAfter > interval {
				interval = min(te.RetryAfter, time.Minute)
			}
			e.log.Info("the authorization server does not answer; asking again", "account", a.String(), "error", err)
		default:
			e.dropPending(ctx, p)
			return nil, pollError(a, err)
		}
	}
}

// pollOnce asks once. A yes is stored even if the caller has gone.
func (e *Engine) pollOnce(ctx context.Context, w *web, p *pending) (*Login, error) {
	if err := e.store.Ready(ctx, grantRoom); err != nil {
		return nil, &UnavailableError{Account: p.account(), Reason: "the login cannot be stored", Err: err}
	}
	key, err := loadDPoPKey(p.DPoP.Secret)
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {grantDevice}, "device_code": {p.Device.Code.Reveal()}}
	if p.Resource != "" {
		form.Set("resource", p.Resource)
	}
	return detached(ctx, e, completeLimit, func(ctx context.Context) (*Login, error) {
		answer, err := e.post(ctx, w, tokenCall{endpoint: p.TokenEndpoint, form: form, client: p.Client, proof: key})
		if err != nil {
			return nil, err
		}
		login, err := e.storeGrant(ctx, p, answer)
		if err == nil {
			e.dropPending(ctx, p)
			e.waiting.finish(p.State.Reveal(), outcome{login, nil})
		}
		return login, err
	})
}

// pollError puts the end of a device login into words.
func pollError(a Account, err error) error {
	switch {
	case refusedWith(err, "access_denied"):
		return &DeniedError{Account: a, Code: "access_denied", Hint: fmt.Sprintf("run `%s --device` to try again", a.command())}
	case refusedWith(err, "expired_token"):
		return fmt.Errorf("login to %s: %w; run `%s --device` for a new code", a, ErrExpired, a.command())
	}
	return fmt.Errorf("login to %s with a device code: %w", a, err)
}
