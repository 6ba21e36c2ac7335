package grants

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

const (
	// verdictLife is how long a server that refuses good tokens is left alone.
	verdictLife = 5 * time.Minute
	moveTimeout = 5 * time.Second
	// young is how soon after its renewal a token is refused from the start: another
	// one would be too, until it is old.
	young = time.Minute
	old   = time.Hour
)

// refusals decides what to do when a server refused a request.
type refusals struct {
	*Env

	grants    *Store
	steps     *StepUps
	refresher *refresher
}

// Refused takes in that the server refused a request. Nil means that one more try is
// worth it: there are newer tokens, or there is one to be had without a person.
// Otherwise the error says what is needed: [*NeedsLoginError], [*UnavailableError]
// when trying later is right, or [ErrStepUp] when asking for more permission has
// been tried often enough.
func (m *Manager) Refused(ctx context.Context, a Account, srv config.Server, c oauth.Challenge) error {
	a = a.Normal()
	if u, err := url.Parse(srv.URL); err == nil {
		m.env.nonces.Set(u, c.Nonce)
	}
	if c.Error == "use_dpop_nonce" {
		return nil
	}
	if !c.Credential.IsZero() {
		_, token, _ := strings.Cut(c.Credential.Reveal(), " ")
		m.env.tokens.refused(vault.NewSecret(token), c.Operation)
	}
	g, err := m.Grants.Load(ctx, a)
	if err != nil {
		return err
	}
	if u, _ := m.Grants.unsaved.get(a); u != nil {
		g = u.g
	}
	if c.InsufficientScope() {
		return m.refusals.tooNarrow(ctx, a, srv, g, c)
	}
	if g == nil {
		return m.refusals.noGrant(ctx, a, srv, c)
	}
	if err := g.suits(srv.URL); err != nil {
		return needsLogin(a, "%v", err)
	}
	return m.refusals.badToken(ctx, a, srv, g, c)
}

// noGrant is a refusal of a request without a credential.
func (rs *refusals) noGrant(ctx context.Context, a Account, srv config.Server, c oauth.Challenge) error {
	for name := range srv.Headers {
		if strings.EqualFold(name, "Authorization") {
			return &NeedsLoginError{Account: a, Reason: "the server refuses the configured Authorization header", Command: "usher doctor " + a.String()}
		}
	}
	if MachineFlow(srv) == "" {
		return needsLogin(a, "not logged in")
	}
	_, err := rs.refresher.renew(ctx, a, srv, renewal{challenge: &c})
	return err
}

// tooNarrow is a refusal of a token that lacks a scope. Renewing would not widen it.
func (rs *refusals) tooNarrow(ctx context.Context, a Account, srv config.Server, g *Grant, c oauth.Challenge) error {
	if g != nil && rs.isAnother(g, c) && len(oauth.MissingScopes(strings.Fields(c.Scope), g.Scopes)) == 0 {
		return nil // a login has widened it meanwhile
	}
	if MachineFlow(srv) != "" {
		return &NeedsLoginError{Account: a, Reason: "the server requires the scope " + orNothing(oauth.Clean(c.Scope, 200)) + "; add it to oauth.scopes", Command: "usher doctor " + a.String()}
	}
	return rs.steps.request(ctx, a, g, c)
}

// isAnother reports whether the grant's token is another one than the server
// refused, so that trying it is worth it.
func (rs *refusals) isAnother(g *Grant, c oauth.Challenge) bool {
	if !c.Credential.IsZero() || rs.tokens.watched() {
		return !rs.tokens.isRefused(g.Access.Secret)
	}
	return !rs.tokens.wasHanded(g.Access.Secret)
}

// badToken is a 401 for a token, or for a request that was sent before there was one.
func (rs *refusals) badToken(ctx context.Context, a Account, srv config.Server, g *Grant, c oauth.Challenge) error {
	if g.Ended != nil {
		rs.grants.cache.put(a, g)
		return needsLogin(a, "%s", g.Ended.Reason)
	}
	if rs.isAnother(g, c) {
		rs.grants.cache.put(a, g)
		return nil
	}
	if rs.tokens.isHopeless(g.Access.Secret) {
		return rs.convict(a, g, "the authorization server issued a token and the server refuses it: it may be meant for another resource (see oauth.resource and oauth.audience), or lack a permission")
	}
	if to := rs.movedTo(ctx, srv, g, c); to != "" {
		return rs.convict(a, g, "the server now uses the authorization server "+to+" and the login is from "+oauth.HostOf(g.Issuer))
	}
	if !canRenew(g, srv) {
		return rs.convict(a, g, "the token is no longer good and there is no refresh token")
	}
	_, err := rs.refresher.renew(ctx, a, srv, renewal{stale: g.Generation, challenge: &c})
	return err
}

// convict remembers why a grant is not tried again for a while.
func (rs *refusals) convict(a Account, g *Grant, reason string) error {
	rs.verdicts.put(a, g.Version, reason)
	return needsLogin(a, "%s", reason)
}

// movedTo returns the new authorization server of a server that has moved away from
// the one a grant is from, else "". Credentials never follow it there.
func (rs *refusals) movedTo(ctx context.Context, srv config.Server, g *Grant, c oauth.Challenge) string {
	o := oauth.SettingsOf(srv)
	server, err := url.Parse(srv.URL)
	if err != nil || g.Issuer == "" || o.Issuer != "" || o.MetadataURL != "" || o.Discovery.Mode == "off" || MachineFlow(srv) != "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	w := rs.Client(rs.BoundsOf(ctx, srv))
	defer w.Close()
	prm, err := w.FindResourceMetadata(ctx, server, c)
	if err != nil || prm == nil || len(prm.AuthorizationServers) == 0 {
		return "" // not known to have moved
	}
	same := func(s string) bool { return strings.TrimSuffix(s, "/") == strings.TrimSuffix(g.Issuer, "/") }
	if slices.ContainsFunc(prm.AuthorizationServers, same) {
		return ""
	}
	return oauth.HostOf(prm.AuthorizationServers[0])
}

// verdictLog remembers grants that are no use although nothing says that they ended.
type verdictLog struct {
	mu sync.Mutex // guards by
	by map[Account]verdict
}

type verdict struct {
	version int64 // of the grant's record; unlike a generation it never comes again
	reason  string
	until   time.Time
}

func (b *verdictLog) put(a Account, version int64, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[Account]verdict{}
	}
	b.by[a] = verdict{version, reason, time.Now().Add(verdictLife)}
}

func (b *verdictLog) standing(a Account, version int64) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.by[a]
	if !ok || v.version != version || time.Now().After(v.until) {
		return ""
	}
	return v.reason
}

func (b *verdictLog) clear(a Account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.by, a)
}
