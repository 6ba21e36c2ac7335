package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
)

// machineFlow is the configured flow if it needs no person, else "".
func machineFlow(srv config.Server) Flow {
	switch g := oauth.SettingsOf(srv).Grant; g {
	case config.GrantClientCredentials:
		return FlowClientCredentials
	case config.GrantJWTBearer:
		return FlowJWTBearer
	case config.GrantEnterprise:
		return FlowEnterprise
	}
	return ""
}

// Machine logs an account in without a person, as oauth.grant says: with client
// credentials, a workload's assertion, or through the enterprise's identity
// provider. [ErrNoFlow] when no such grant is configured.
func (e *Engine) Machine(ctx context.Context, a Account, srv config.Server, options *LoginOptions) (*Login, error) {
	a = a.normal()
	if machineFlow(srv) == "" {
		return nil, fmt.Errorf("log in to %s without a person: %w: oauth.grant is not client_credentials, jwt_bearer or enterprise", a, ErrNoFlow)
	}
	var c *Challenge
	if options != nil {
		c = options.Challenge
	}
	g, err := e.refresher.renew(ctx, a, srv, renewal{always: true, challenge: c})
	if err != nil {
		return nil, err
	}
	return g.login(a), nil
}

// obtain asks for a token as the configuration says. It sends one request to the
// token endpoint and does not repeat it.
func (rf *refresher) obtain(ctx context.Context, a Account, srv config.Server, c *Challenge) (*grant, *oauth.TokenResponse, error) {
	rf.count.asked.Add(1)
	flow := machineFlow(srv)
	b, err := rf.preparer.prepare(ctx, a, srv, &LoginOptions{Challenge: c})
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
	g := &grant{
		Flow: flow, ServerURL: p.ServerURL, Issuer: p.Issuer, TokenEndpoint: p.TokenEndpoint, RevocationEndpoint: p.RevocationEndpoint,
		Client: p.Client, Bind: p.Bind, Bounds: p.Bounds, Resource: p.Resource, Audience: p.Audience, Requested: p.Requested, DPoP: p.DPoP,
	}
	return g, answer, bound(g, answer)
}

// assertionPrint tells assertions apart without keeping them: one that was refused
// is not sent again.
func assertionPrint(srv config.Server) string {
	o := oauth.SettingsOf(srv)
	text := o.Assertion
	if o.IDP != nil {
		text += "\n" + o.IDP.IDToken
	}
	if strings.TrimSpace(text) == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
