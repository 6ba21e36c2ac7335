package auth

import (
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

// ours are parameters that configuration cannot change.
var ours = []string{"response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method", "resource", "dpop_jkt"}

// authorizeRequest is what one login adds to the address of the consent page.
type authorizeRequest struct {
	client   string // client id
	redirect string
	scopes   []string
	state    string
	verifier string   // PKCE
	key      *dpopKey // nil: no DPoP
}

// authorizeURL is the address of the consent page.
func (p *provider) authorizeURL(r authorizeRequest) (string, error) {
	u, err := pageURL("the authorization endpoint", p.meta.AuthorizationEndpoint)
	if err != nil {
		return "", err
	}
	q := u.Query()
	for k, v := range p.authorizeParams(r) {
		q.Set(k, v)
	}
	q.Set("state", r.state)
	q.Set("code_challenge", oauth2.S256ChallengeFromVerifier(r.verifier))
	q.Set("code_challenge_method", "S256")
	if r.key != nil {
		q.Set("dpop_jkt", r.key.thumbprint())
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// authorizeParams is what does not change from login to login.
func (p *provider) authorizeParams(r authorizeRequest) map[string]string {
	q := map[string]string{}
	if slices.Contains(r.scopes, offlineAccess) {
		q["prompt"] = "consent" // OpenID Connect Core, section 11
	}
	for k, v := range p.params {
		if !slices.Contains(ours, k) {
			q[k] = v
		}
	}
	q["response_type"], q["client_id"], q["redirect_uri"] = "code", r.client, r.redirect
	if len(r.scopes) > 0 {
		q["scope"] = strings.Join(r.scopes, " ")
	}
	if p.resource != "" {
		q["resource"] = p.resource
	}
	if p.audience != "" {
		q["audience"] = p.audience
	}
	return q
}
