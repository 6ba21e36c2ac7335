package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

// Bounds of finishing a login.
const (
	claimLife     = time.Minute
	completeLimit = 90 * time.Second
)

// Login is a finished login, without its tokens.
type Login struct {
	Account Account
	Issuer  string
	Flow    Flow
	// Scopes is what was granted, as far as the server says.
	Scopes []string
	// Missing is what was asked for and not granted.
	Missing []string
	// Expires is zero when the server does not say.
	Expires time.Time
	// CanRefresh is false when the login ends with its token.
	CanRefresh bool
	Generation int64
}

func loginOf(a Account, g *grants.Grant) *Login {
	lacks := oauth.MissingScopes(g.Requested, g.Scopes)
	if g.Renewable() {
		// Providers list it seldom, but this is what it was asked for.
		lacks = slices.DeleteFunc(lacks, func(s string) bool { return s == "offline_access" })
	}
	return &Login{
		Account: a, Issuer: g.Issuer, Flow: g.Flow, Scopes: g.Scopes, Missing: lacks,
		Expires: g.Expires, CanRefresh: g.Renewable(), Generation: g.Generation,
	}
}

// checkIssuer decides by the table of RFC 9207 whether the answer comes from the
// server that was asked. Plain comparison, without any normalisation.
//
// Where endpoints are configured without an issuer there is no name to compare with. The
// answer must then name the origin of one of these endpoints: that is where the user
// said that the authorization server is.
func (p *pending) checkIssuer(cb Callback) error {
	switch {
	case cb.HasIss && p.Issuer == "":
		if p.atEndpoint(cb.Iss) {
			return nil
		}
		return fmt.Errorf("%w: it names %q; if that is right, set oauth.issuer to it", ErrIssuer, oauth.Clean(cb.Iss, 200))
	case cb.HasIss && cb.Iss != p.Issuer:
		return ErrIssuer
	case !cb.HasIss && p.IssParameter:
		return fmt.Errorf("%w: it does not name itself, although it says that it does", ErrIssuer)
	}
	return nil
}

// atEndpoint reports whether an issuer is at the origin of a configured endpoint.
func (p *pending) atEndpoint(iss string) bool {
	u, err := url.Parse(iss)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return false
	}
	for _, endpoint := range []string{p.AuthorizeURL.Reveal(), p.TokenEndpoint} {
		if e, err := url.Parse(endpoint); err == nil && oauth.Origin(e) == oauth.Origin(u) {
			return true
		}
	}
	return false
}

// awaits reports whether an answer in a browser can end the login, and whether the
// principal that brings it may do so.
func (p *pending) awaits(cb Callback) bool {
	return p.Flow == FlowCode && (cb.Principal == "" || cb.Principal == p.account().Normal().Principal)
}

// completer finishes logins with what came back from their pages.
type completer struct {
	*grants.Env

	grants   *grants.Manager
	clients  *registrar
	pendings *pendingLogins
	slots    chan struct{} // full while as many callbacks as allowed are being processed
}

// Complete finishes a login with what came back from its page. Only one caller in
// any process exchanges the code; the others get [ErrBeingCompleted] or, after
// it, [ErrUnknownState]. An answer from the wrong server leaves the login as it was
// ([ErrIssuer]), and so does a failure of the network ([ErrUnavailable]): the same
// answer may be handed in again. A refusal ends it.
func (e *Engine) Complete(ctx context.Context, cb Callback) (*Login, error) {
	return e.completer.complete(ctx, cb)
}

func (co *completer) complete(ctx context.Context, cb Callback) (*Login, error) {
	p, err := co.pendings.find(ctx, cb.State)
	if err != nil {
		return nil, err
	}
	if !p.awaits(cb) {
		return nil, ErrUnknownState
	}
	if err := p.checkIssuer(cb); err != nil {
		logFailure(co.Log, p.account(), err)
		return nil, fmt.Errorf("login to %s: %w; nothing was sent", p.account(), err)
	}
	if cb.Code.IsZero() && cb.Error == "" {
		return nil, fmt.Errorf("%w: it has neither a code nor an error", ErrBadPaste)
	}
	return grants.Detached(ctx, co.Env, completeLimit, func(ctx context.Context) (*Login, error) { return co.claim(ctx, cb) })
}

// claim makes sure that nobody else finishes the login, and finishes it.
func (co *completer) claim(ctx context.Context, cb Callback) (*Login, error) {
	lease, err := co.Store.Lease(ctx, "login/"+stateName(cb.State), claimLife)
	if errors.Is(err, vault.ErrHeld) {
		return nil, ErrBeingCompleted
	}
	if err != nil {
		return nil, fmt.Errorf("claim the login: %w", err)
	}
	// A release that fails gives the claim back when it runs out.
	defer func() { _ = co.Store.Release(ctx, lease) }()
	p, err := co.pendings.find(ctx, cb.State)
	if err != nil {
		return nil, err
	}
	login, err := co.finish(ctx, p, cb)
	if err != nil {
		logFailure(co.Log, p.account(), err)
	}
	if err != nil && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrDenied) {
		return nil, err // the login stays as it was
	}
	co.pendings.drop(ctx, p)
	co.pendings.waiting.finish(cb.State, outcome{login, err})
	if err == nil {
		co.pendings.dropCovered(ctx, p)
	}
	return login, err
}

// finish records a refusal or exchanges the code.
func (co *completer) finish(ctx context.Context, p *pending, cb Callback) (*Login, error) {
	a := p.account()
	if cb.Error != "" {
		return nil, co.denied(ctx, p, cb)
	}
	if err := co.Store.Ready(ctx, grants.Room); err != nil {
		return nil, &UnavailableError{Account: a, Reason: "the login cannot be stored", Err: err}
	}
	key, err := oauth.LoadDPoPKey(p.DPoP.Secret)
	if err != nil {
		return nil, fmt.Errorf("login to %s: %w", a, err)
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {cb.Code.Reveal()},
		"redirect_uri": {p.RedirectURI}, "code_verifier": {p.Verifier.Reveal()},
	}
	if p.Resource != "" {
		form.Set("resource", p.Resource)
	}
	w := co.Client(p.Bounds)
	defer w.Close()
	answer, err := w.RequestToken(ctx, oauth.TokenRequest{Endpoint: p.TokenEndpoint, Form: form, Credentials: p.Client, DPoP: key})
	if err != nil {
		if oauth.RefusedWith(err, "invalid_client", "unauthorized_client") {
			co.clients.forget(ctx, p.Bind, p.Group, p.Client)
		}
		return nil, fmt.Errorf("login to %s: trade the code: %w", a, withTargetHint(err, a, p.Resource))
	}
	return co.storeGrant(ctx, p, answer)
}

// storeGrant makes the answer durable before anybody uses it.
func (co *completer) storeGrant(ctx context.Context, p *pending, answer *oauth.TokenResponse) (*Login, error) {
	a := p.account()
	g := &grants.Grant{
		Flow: p.Flow, ServerURL: p.ServerURL, Issuer: p.Issuer, TokenEndpoint: p.TokenEndpoint, RevocationEndpoint: p.RevocationEndpoint,
		Client: p.Client, Bind: p.Bind, Group: p.Group, Bounds: p.Bounds, Resource: p.Resource, Audience: p.Audience,
		Requested: p.Requested, DPoP: p.DPoP,
	}
	if err := g.CheckBinding(answer); err != nil {
		return nil, fmt.Errorf("login to %s: %w", a, err)
	}
	g.Take(answer)
	if err := co.grants.StoreLogin(ctx, a, g); err != nil {
		return nil, err
	}
	return loginOf(a, g), nil
}

// denied turns the server's refusal into an error, and learns from it.
func (co *completer) denied(ctx context.Context, p *pending, cb Callback) error {
	a := p.account()
	d := &DeniedError{Account: a, Code: "an error", Words: oauth.CleanDescription(cb.Words), Hint: "log in again to retry"}
	if oauth.ValidErrorCode(cb.Error) {
		d.Code = cb.Error
	}
	switch cb.Error {
	case "invalid_target":
		if p.Resource != "" {
			d.Hint = targetHint(a, p.Resource)
		}
	case "invalid_scope":
		d.Hint = "set oauth.scopes to what the provider offers"
	case "invalid_client", "unauthorized_client":
		co.clients.forget(ctx, p.Bind, p.Group, p.Client)
	}
	return d
}

// targetHint tells the person what may be set when the provider refuses the resource
// parameter, and what that means.
func targetHint(a Account, resource string) string {
	return fmt.Sprintf(`the provider does not issue tokens for %s. Check that %s is really its server. If it is, set "oauth": {"resource": "omit"} (or the URI that the provider documents) for this server; with "omit" the server gets a token that is not restricted to it`,
		oauth.Clean(resource, 200), oauth.Clean(a.Server, 100))
}

// withTargetHint adds targetHint to a refusal of the resource parameter.
func withTargetHint(err error, a Account, resource string) error {
	if resource == "" || !oauth.RefusedWith(err, "invalid_target") {
		return err
	}
	return fmt.Errorf("%w; %s", err, targetHint(a, resource))
}

// loggedReason is how much of a reason is logged: some of it may come from a server.
const loggedReason = 300

// logFailure logs why a login did not end well. There is one line for each pending
// login, or for each answer that came from the wrong server.
func logFailure(log *slog.Logger, a Account, err error) {
	what := "the login failed"
	if errors.Is(err, ErrDenied) {
		what = "the login was denied"
	}
	log.Warn(what, append(a.LogAttrs(), "reason", oauth.Clean(err.Error(), loggedReason))...)
}
