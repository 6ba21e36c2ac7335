package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// LoginOptions steer one login. The zero value works.
type LoginOptions struct {
	// Challenge is what the server said when it refused. Nil: it is asked.
	Challenge *Challenge
	// Scopes are asked for beside those that are chosen anyway.
	Scopes []string
	// Redirect is the address the answer comes back to. Default: oauth.redirectUri,
	// else a loopback address.
	Redirect string
	// Loopback is the loopback address that the answer comes back to where no other
	// is configured: one at which somebody takes it who hands it on, such as the
	// courier on the person's own machine. Default: this process's own.
	Loopback string
	// Listen makes this process take the answer at a loopback address. Without it
	// the answer is pasted, or another process takes it.
	Listen bool
	// FreshClient registers a new client although there is a stored one, for
	// providers that show an error in place of their consent page.
	FreshClient bool
	// Where says which process this is, for people who look at pending logins.
	Where string
}

// preparedLogin is a login that was prepared as far as the flows have in common.
type preparedLogin struct {
	a      Account
	srv    config.Server
	opt    LoginOptions
	web    *oauth.Client
	p      *oauth.Provider
	to     oauth.Redirect
	client oauth.Credentials
	scopes []string
	step   *grants.StepUp // a step-up that this login answers; nil: none
	had    int64          // version of the grant there is; 0: none
}

// preparer does what the beginnings of all logins have in common.
type preparer struct {
	*grants.Env

	grants *grants.Store
	steps  *grants.StepUps
}

// prepare discovers, chooses scopes and finds a client. The caller closes web.
func (pr *preparer) prepare(ctx context.Context, a Account, srv config.Server, options *LoginOptions) (b *preparedLogin, err error) {
	b = &preparedLogin{a: a, srv: srv, web: pr.Client(pr.BoundsOf(ctx, srv))}
	if options != nil {
		b.opt = *options
	}
	defer func(w *oauth.Client) {
		if err != nil {
			w.Close()
		}
	}(b.web)
	if b.p, err = b.web.Discover(ctx, srv, b.opt.Challenge); err != nil {
		return nil, err
	}
	if b.step, err = pr.steps.Load(ctx, a); err != nil {
		return nil, err
	}
	if g, err := pr.grants.Load(ctx, a); err == nil && g != nil {
		b.had = g.Version
	}
	b.scopes, _ = oauth.ChooseScopes(oauth.SettingsOf(srv), b.p)
	b.scopes = oauth.UnionScopes(b.scopes, b.opt.Scopes)
	if b.step.Open {
		b.scopes = oauth.UnionScopes(b.scopes, b.step.Scopes)
	}
	if err := oauth.CheckScopes(b.scopes); err != nil {
		return nil, fmt.Errorf("log in to %s: %w", a, err)
	}
	return b, nil
}

// beginLease is how long others wait for a process that died while it began a login.
const beginLease = 10 * time.Second

// Alone runs f while no process that shares the store runs its own for the same
// account. A caller that joins a pending login, or begins one if there is none, does
// both inside f.
func (e *Engine) Alone(ctx context.Context, a Account, f func(context.Context) error) error {
	name := "begin/" + a.Normal().Key(vault.KindGrant).String()
	return vault.Hold(ctx, e.env.Store, name, beginLease, func(ctx context.Context, _ vault.Lease) error { return f(ctx) })
}

// Begin starts a login through a browser page and returns at once. What comes back
// from the page goes to [Engine.Complete], in this process or another one.
func (e *Engine) Begin(ctx context.Context, a Account, srv config.Server, options *LoginOptions) (*Pending, error) {
	a = a.Normal()
	b, err := e.preparer.prepare(ctx, a, srv, options)
	if err != nil {
		return nil, err
	}
	defer b.web.Close()
	if b.p.Metadata.AuthorizationEndpoint == "" && b.p.Metadata.DeviceEndpoint != "" {
		return nil, fmt.Errorf("log in to %s with a browser: %w: the authorization server has a device endpoint only; log in with a device code", a, ErrNoFlow)
	}
	if b.p.Metadata.AuthorizationEndpoint == "" {
		return nil, fmt.Errorf("log in to %s with a browser: %w: the authorization server names no authorization endpoint", a, ErrNoFlow)
	}
	if !b.p.Metadata.SupportsPKCE() {
		return nil, fmt.Errorf("log in to %s: the authorization server %s does not advertise PKCE with S256 (code_challenge_methods_supported), so its codes could be stolen; ask its operator",
			a, oauth.HostOf(b.p.Binding()))
	}
	defer e.callbacks.server.Hold()()
	if b.to, err = e.callbacks.redirectFor(ctx, srv, b.opt); err != nil {
		return nil, err
	}
	if b.client, err = e.clients.identify(ctx, b.web, b.p, oauth.SettingsOf(srv), &b.to, b.opt.FreshClient); err != nil {
		return nil, fmt.Errorf("log in to %s: %w", a, err)
	}
	p, err := e.pendings.create(b)
	if err != nil {
		return nil, fmt.Errorf("log in to %s: %w", a, err)
	}
	if err := e.grants.Steps.Count(ctx, a, b.step); err != nil {
		return nil, err
	}
	if err := e.pendings.admit(ctx, p); err != nil {
		return nil, err
	}
	if err := e.pendings.put(ctx, p); err != nil {
		return nil, err
	}
	e.pendings.waiting.begin(p)
	return p.view(), nil
}

// create makes the record and the address of the page.
func (pl *pendingLogins) create(b *preparedLogin) (*pending, error) {
	p := b.record(FlowCode)
	verifier := oauth2.GenerateVerifier()
	p.Verifier = oauth.NewStoredSecret(verifier)
	key, err := p.dpop(oauth.SettingsOf(b.srv))
	if err != nil {
		return nil, err
	}
	request := b.authorizeRequest()
	request.State, request.Verifier, request.Key = p.State.Reveal(), verifier, key
	address, err := b.p.AuthorizeURL(request)
	if err != nil {
		return nil, err
	}
	p.AuthorizeURL = oauth.NewStoredSecret(address)
	return p, nil
}

// authorizeRequest is the part of the request that does not change from login to login.
func (b *preparedLogin) authorizeRequest() oauth.AuthorizeRequest {
	return oauth.AuthorizeRequest{ClientID: b.client.ID, Redirect: b.to.URI, Scopes: b.scopes}
}

// record is what pending logins of all flows have in common.
func (b *preparedLogin) record(flow Flow) *pending {
	now := time.Now()
	return &pending{
		Principal: b.a.Normal().Principal, Server: b.a.Server, Label: b.a.Label, ServerURL: b.srv.URL, Flow: flow,
		State: oauth.NewStoredSecret(newState()), RedirectURI: b.to.URI, Requested: b.scopes, Resource: b.p.Resource, Audience: b.p.Audience,
		Issuer: b.p.Issuer, IssParameter: b.p.Metadata.IssParameter, TokenEndpoint: b.p.Metadata.TokenEndpoint,
		RevocationEndpoint: b.p.Metadata.RevocationEndpoint, Client: b.client, Bind: b.p.Binding(), Group: b.to.Group(),
		Bounds: b.p.Bounds, Had: b.had, Created: now, Expires: now.Add(pendingLife), Where: b.opt.Where,
	}
}

// dpop makes the key that the tokens will be bound to, where that is asked for.
func (p *pending) dpop(o config.OAuth) (*oauth.DPoPKey, error) {
	if !o.DPoP {
		return nil, nil
	}
	key, text, err := oauth.NewDPoPKey()
	p.DPoP = oauth.StoredSecret{Secret: text}
	return key, err
}

// redirectFor decides where the answer comes back to, and begins to listen there
// if this process is to take it.
func (cl *callbackListener) redirectFor(ctx context.Context, srv config.Server, opt LoginOptions) (oauth.Redirect, error) {
	to, ok := fixedRedirect(srv, opt)
	if !ok && opt.Loopback != "" {
		return oauth.Redirect{URI: opt.Loopback, Class: oauth.ClassLoopback}, nil
	}
	if !ok {
		address, err := cl.address(ctx, opt.Listen)
		return oauth.Redirect{URI: address, Class: oauth.ClassLoopback}, err
	}
	u, err := url.Parse(to.URI)
	if err != nil || u.Host == "" || u.Fragment != "" {
		return oauth.Redirect{}, errors.New("oauth.redirectUri is not an absolute address without fragment")
	}
	if opt.Listen && to.Class == oauth.ClassFixed {
		if err := cl.server.ListenOn(u, cl.identity(ctx).ID); err != nil {
			return oauth.Redirect{}, engineClosed(err)
		}
	}
	return to, nil
}

// fixedRedirect is the redirect address that does not depend on the process, if
// there is one.
func fixedRedirect(srv config.Server, opt LoginOptions) (oauth.Redirect, bool) {
	if fixed := cmp.Or(opt.Redirect, oauth.SettingsOf(srv).RedirectURI); fixed != "" {
		return oauth.Redirect{URI: fixed, Class: oauth.ClassFixed}, true
	}
	return oauth.Redirect{}, false
}
