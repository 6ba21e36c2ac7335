package auth

import (
	"context"
	"fmt"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
)

// Machine logs an account in without a person, as oauth.grant says: with client
// credentials, a workload's assertion, or through the enterprise's identity
// provider. [ErrNoFlow] when no such grant is configured.
func (e *Engine) Machine(ctx context.Context, a Account, srv config.Server, options *LoginOptions) (*Login, error) {
	a = a.Normal()
	if grants.MachineFlow(srv) == "" {
		return nil, fmt.Errorf("log in to %s without a person: %w: oauth.grant is not client_credentials, jwt_bearer or enterprise", a, ErrNoFlow)
	}
	var c *Challenge
	if options != nil {
		c = options.Challenge
	}
	g, err := e.grants.Obtain(ctx, a, srv, c)
	if err != nil {
		return nil, err
	}
	return loginOf(a, g), nil
}

// obtain asks for a token as the configuration says. It sends one request to the
// token endpoint and does not repeat it.
func (pr *preparer) obtain(ctx context.Context, a Account, srv config.Server, c *Challenge) (*grants.Grant, *oauth.TokenResponse, error) {
	flow := grants.MachineFlow(srv)
	b, err := pr.prepare(ctx, a, srv, &LoginOptions{Challenge: c})
	if err != nil {
		return nil, nil, err
	}
	defer b.web.Close()
	o := oauth.SettingsOf(srv)
	var ok bool
	if b.client, ok, err = oauth.ConfiguredClient(b.p, o); err != nil {
		return nil, nil, err
	}
	if !ok && flow != FlowJWTBearer {
		return nil, nil, fmt.Errorf("log in to %s: %w: oauth.clientId must be set for this grant", a, ErrNoClient)
	}
	p := b.record(flow)
	key, err := p.dpop(o)
	if err != nil {
		return nil, nil, err
	}
	form, err := b.web.MachineForm(ctx, b.p, o, b.scopes)
	if err != nil {
		return nil, nil, err
	}
	answer, err := b.web.RequestToken(ctx, oauth.TokenRequest{Endpoint: p.TokenEndpoint, Form: form, Credentials: b.client, DPoP: key})
	if err != nil {
		return nil, nil, withTargetHint(err, a, p.Resource)
	}
	g := &grants.Grant{
		Flow: flow, ServerURL: p.ServerURL, Issuer: p.Issuer, TokenEndpoint: p.TokenEndpoint, RevocationEndpoint: p.RevocationEndpoint,
		Client: p.Client, Bind: p.Bind, Bounds: p.Bounds, Resource: p.Resource, Audience: p.Audience, Requested: p.Requested, DPoP: p.DPoP,
	}
	return g, answer, g.CheckBinding(answer)
}
