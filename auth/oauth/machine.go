package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/usher-mcp/usher/config"
)

const (
	// GrantTypeJWTBearer is the grant type of a signed assertion (RFC 7523).
	GrantTypeJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	// GrantTypeTokenExchange is the grant type of a token exchange (RFC 8693).
	GrantTypeTokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeIDToken            = "urn:ietf:params:oauth:token-type:id_token"
	typeIDJAG              = "urn:ietf:params:oauth:token-type:id-jag"
)

// MachineForm is the token request of a configured grant that needs no person.
func (w *Client) MachineForm(ctx context.Context, p *Provider, o config.OAuth, scopes []string) (url.Values, error) {
	form := url.Values{}
	p.restrict(form, scopes)
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(MissingScopes(scopes, []string{ScopeOfflineAccess}), " "))
	}
	switch o.Grant {
	case config.GrantClientCredentials:
		form.Set("grant_type", "client_credentials")
	case config.GrantJWTBearer:
		if o.Assertion == "" {
			return nil, errors.New("oauth.assertion must be set for the grant jwt_bearer; ${file:PATH} reads it again each time")
		}
		form.Set("grant_type", GrantTypeJWTBearer)
		form.Set("assertion", strings.TrimSpace(o.Assertion))
	case config.GrantEnterprise:
		jag, err := w.exchangeIDToken(ctx, p, o.IDP, form)
		if err != nil {
			return nil, err
		}
		form.Set("grant_type", GrantTypeJWTBearer)
		form.Set("assertion", jag)
	}
	return form, nil
}

// exchangeIDToken trades the person's identity at the enterprise's provider for an
// assertion that the server's authorization server takes (ID-JAG).
func (w *Client) exchangeIDToken(ctx context.Context, p *Provider, idp *config.IDP, like url.Values) (string, error) {
	if idp == nil || idp.IDToken == "" {
		return "", errors.New("oauth.idp.idToken must be set for the grant enterprise")
	}
	endpoint := idp.TokenEndpoint
	if endpoint == "" {
		m, err := w.findMetadata(ctx, idp.Issuer)
		if err != nil {
			return "", fmt.Errorf("find the identity provider: %w", err)
		}
		if m == nil {
			return "", errors.New("the identity provider publishes no metadata; set oauth.idp.tokenEndpoint")
		}
		endpoint = m.TokenEndpoint
	}
	form := url.Values{
		"grant_type": {GrantTypeTokenExchange}, "requested_token_type": {typeIDJAG}, "audience": {p.Binding()},
		"subject_token": {strings.TrimSpace(idp.IDToken)}, "subject_token_type": {typeIDToken},
	}
	for _, name := range []string{"scope", "resource"} {
		if v := like.Get(name); v != "" {
			form.Set(name, v)
		}
	}
	c := Credentials{ID: idp.ClientID, Secret: NewStoredSecret(idp.ClientSecret), Method: pickMethod(nil, idp.ClientSecret != "")}
	answer, err := w.RequestToken(ctx, TokenRequest{Endpoint: endpoint, Form: form, Credentials: c})
	if err != nil {
		return "", fmt.Errorf("exchange the identity at %s: %w", HostOf(endpoint), err)
	}
	if t := textField(answer.fields, "issued_token_type"); t != typeIDJAG {
		return "", fmt.Errorf("%w: the identity provider issued a token of another type than asked", ErrRefused)
	}
	return answer.Access.Reveal(), nil
}
