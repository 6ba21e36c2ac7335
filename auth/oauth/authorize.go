package oauth

import (
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

// ours are parameters that configuration cannot change.
var ours = []string{"response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method", "resource", "dpop_jkt"}

// AuthorizeRequest is what one login adds to the address of the consent page.
type AuthorizeRequest struct {
	ClientID string // Credentials id
	Redirect string
	Scopes   []string
	State    string
	Verifier string   // PKCE
	Key      *DPoPKey // nil: no DPoP
}

// AuthorizeURL is the address of the consent page.
func (p *Provider) AuthorizeURL(r AuthorizeRequest) (string, error) {
	u, err := PageURL("the authorization endpoint", p.Metadata.AuthorizationEndpoint)
	if err != nil {
		return "", err
	}
	q := u.Query()
	for k, v := range p.AuthorizeParams(r) {
		q.Set(k, v)
	}
	q.Set("state", r.State)
	q.Set("code_challenge", oauth2.S256ChallengeFromVerifier(r.Verifier))
	q.Set("code_challenge_method", "S256")
	if r.Key != nil {
		q.Set("dpop_jkt", r.Key.thumbprint())
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// AuthorizeParams is what does not change from login to login.
func (p *Provider) AuthorizeParams(r AuthorizeRequest) map[string]string {
	q := map[string]string{}
	if slices.Contains(r.Scopes, ScopeOfflineAccess) {
		q["prompt"] = "consent" // OpenID Connect Core, section 11
	}
	for k, v := range p.params {
		if !slices.Contains(ours, k) {
			q[k] = v
		}
	}
	q["response_type"], q["client_id"], q["redirect_uri"] = "code", r.ClientID, r.Redirect
	if len(r.Scopes) > 0 {
		q["scope"] = strings.Join(r.Scopes, " ")
	}
	if p.Resource != "" {
		q["resource"] = p.Resource
	}
	if p.Audience != "" {
		q["audience"] = p.Audience
	}
	return q
}
