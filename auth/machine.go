package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/usher-mcp/usher/config"
)

const (
	grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange  = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeIDToken    = "urn:ietf:params:oauth:token-type:id_token"
	typeIDJAG      = "urn:ietf:params:oauth:token-type:id-jag"
)

// machineFlow is the configured flow if it needs no person, else "".
func machineFlow(srv config.Server) Flow {
	switch g := oauthOf(srv).Grant; g {
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
	g, err := e.renew(ctx, a, srv, renewal{always: true, challenge: c})
	if err != nil {
		return nil, err
	}
	return g.login(a), nil
}

// obtain asks for a token as the configuration says. It sends one request to the
// token endpoint and does not repeat it.
func (e *Engine) obtain(ctx context.Context, a Account, srv config.Server, c *Challenge) (*grant, *tokenAnswer, error) {
	e.count.asked.Add(1)
	flow := machineFlow(srv)
	b, err := e.prepare(ctx, a, srv, &LoginOptions{Challenge: c})
	if err != nil {
		return nil, nil, err
	}
	defer b.web.close()
	o := oauthOf(srv)
	var ok bool
	if b.client, ok, err = chosenClient(b.p, o); err != nil {
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
	form, err := e.machineForm(ctx, b, flow)
	if err != nil {
		return nil, nil, err
	}
	answer, err := e.post(ctx, b.web, tokenCall{endpoint: p.TokenEndpoint, form: form, client: b.client, proof: key})
	if err != nil {
		return nil, nil, withTargetHint(err, a, p.Resource)
	}
	g := &grant{
		Flow: flow, ServerURL: p.ServerURL, Issuer: p.Issuer, TokenEndpoint: p.TokenEndpoint, RevocationEndpoint: p.RevocationEndpoint,
		Client: p.Client, Bind: p.Bind, Bounds: p.Bounds, Resource: p.Resource, Audience: p.Audience, Requested: p.Requested, DPoP: p.DPoP,
	}
	return g, answer, bound(g, answer)
}

// machineForm is the token request of a flow.
func (e *Engine) machineForm(ctx context.Context, b *begun, flow Flow) (url.Values, error) {
	form := url.Values{}
	if len(b.scopes) > 0 {
		form.Set("scope", strings.Join(missing(b.scopes, []string{offlineAccess}), " "))
	}
	if b.p.resource != "" {
		form.Set("resource", b.p.resource)
	}
	if b.p.audience != "" {
		form.Set("audience", b.p.audience)
	}
	o := oauthOf(b.srv)
	switch flow {
	case FlowClientCredentials:
		form.Set("grant_type", "client_credentials")
	case FlowJWTBearer:
		if o.Assertion == "" {
			return nil, errors.New("oauth.assertion must be set for the grant jwt_bearer; ${file:PATH} reads it anew each time")
		}
		form.Set("grant_type", grantJWTBearer)
		form.Set("assertion", strings.TrimSpace(o.Assertion))
	case FlowEnterprise:
		jag, err := e.exchangeIDToken(ctx, b, form)
		if err != nil {
			return nil, err
		}
		form.Set("grant_type", grantJWTBearer)
		form.Set("assertion", jag)
	}
	return form, nil
}

// exchangeIDToken trades the person's identity at the enterprise's provider for an
// assertion that the server's authorization server takes (ID-JAG).
func (e *Engine) exchangeIDToken(ctx context.Context, b *begun, like url.Values) (string, error) {
	idp := oauthOf(b.srv).IDP
	if idp == nil || idp.IDToken == "" {
		return "", errors.New("oauth.idp.idToken must be set for the grant enterprise")
	}
	endpoint := idp.TokenEndpoint
	if endpoint == "" {
		m, err := b.web.findMetadata(ctx, idp.Issuer)
		if err != nil {
			return "", fmt.Errorf("find the identity provider: %w", err)
		}
		if m == nil {
			return "", errors.New("the identity provider publishes no metadata; set oauth.idp.tokenEndpoint")
		}
		endpoint = m.TokenEndpoint
	}
	form := url.Values{
		"grant_type": {grantExchange}, "requested_token_type": {typeIDJAG}, "audience": {b.p.bind()},
		"subject_token": {strings.TrimSpace(idp.IDToken)}, "subject_token_type": {typeIDToken},
	}
	for _, name := range []string{"scope", "resource"} {
		if v := like.Get(name); v != "" {
			form.Set(name, v)
		}
	}
	c := client{ID: idp.ClientID, Secret: keep(idp.ClientSecret), Method: pickMethod(nil, idp.ClientSecret != "")}
	answer, err := e.post(ctx, b.web, tokenCall{endpoint: endpoint, form: form, client: c})
	if err != nil {
		return "", fmt.Errorf("exchange the identity at %s: %w", hostOf(endpoint), err)
	}
	if t := textField(answer.fields, "issued_token_type"); t != typeIDJAG {
		return "", fmt.Errorf("%w: the identity provider issued a token of another type than asked", ErrRefused)
	}
	return answer.access.Reveal(), nil
}

// assertionPrint tells assertions apart without keeping them: one that was refused
// is not sent again.
func assertionPrint(srv config.Server) string {
	o := oauthOf(srv)
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
