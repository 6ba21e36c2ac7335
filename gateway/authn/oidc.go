package authn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/usher-mcp/usher/internal/limit"
)

// OIDC accepts JWTs that an OIDC issuer made for this gateway. It is an
// [Authenticator]; make it with [NewOIDC].
type OIDC struct {
	opt  OIDCOptions
	base string // without a slash at its end

	keys issuerKeys

	mu       sync.Mutex // guards what follows
	verifier *oidc.IDTokenVerifier
	failed   time.Time // when the issuer could not be asked
}

// OIDCOptions configure NewOIDC. Issuer and URL are needed.
type OIDCOptions struct {
	// Issuer is the OIDC issuer, exactly as it calls itself.
	Issuer string
	// URL is where agents reach this gateway, such as https://usher.example.com.
	// A token is good for an endpoint when its audience is this URL or the
	// endpoint's own.
	URL string
	// Audiences are further ones to accept, for issuers that cannot name a URL.
	Audiences []string
	// Scopes must all be in a token. Default: none is asked for.
	Scopes []string
	// Claim names the principal. Default "sub".
	Claim string
	// Client reaches the issuer. Default: http.DefaultClient with 10s.
	Client *http.Client
}

// retryIssuer is how long to wait before an issuer that failed is asked again.
const retryIssuer = 5 * time.Second

// NewOIDC checks the options. The issuer is asked when the first token comes.
func NewOIDC(opt OIDCOptions) (*OIDC, error) {
	for name, text := range map[string]string{"issuer": opt.Issuer, "url": opt.URL} {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Fragment != "" || u.RawQuery != "" {
			return nil, fmt.Errorf("authentication by OAuth: %s %q is not an http or https URL", name, text)
		}
	}
	if opt.Claim == "" {
		opt.Claim = "sub"
	}
	if opt.Client == nil {
		opt.Client = &http.Client{Timeout: 10 * time.Second}
	}
	return &OIDC{opt: opt, base: strings.TrimRight(opt.URL, "/")}, nil
}

// Authenticate implements [Authenticator].
func (o *OIDC) Authenticate(ctx context.Context, r *http.Request) (Identity, error) {
	text, ok := bearer(r)
	if !ok {
		return Identity{}, o.refuse(r, http.StatusUnauthorized, "", "a bearer token is needed")
	}
	if len(text) > limit.TokenBytes || strings.Count(text, ".") != 2 {
		return Identity{}, o.refuse(r, http.StatusUnauthorized, "invalid_token", "the token is not a JWT")
	}
	verifier, err := o.discover(ctx)
	if err != nil {
		return Identity{}, fmt.Errorf("ask issuer %s: %w", o.opt.Issuer, err)
	}
	token, err := verifier.Verify(oidc.ClientContext(ctx, o.opt.Client), text)
	if err != nil && o.keys.missing() {
		return Identity{}, fmt.Errorf("ask issuer %s for its keys: %w", o.opt.Issuer, err)
	}
	if err != nil {
		var expired *oidc.TokenExpiredError
		if errors.As(err, &expired) {
			return Identity{}, o.refuse(r, http.StatusUnauthorized, "invalid_token", "the token has expired")
		}
		return Identity{}, o.refuse(r, http.StatusUnauthorized, "invalid_token", "the token is not valid")
	}
	if !slices.ContainsFunc(token.Audience, func(a string) bool { return o.audience(a, r.URL.Path) }) {
		return Identity{}, o.refuse(r, http.StatusUnauthorized, "invalid_token", "the token was made for another audience")
	}
	var claims map[string]json.RawMessage
	if err := token.Claims(&claims); err != nil {
		return Identity{}, o.refuse(r, http.StatusUnauthorized, "invalid_token", "the claims of the token cannot be read")
	}
	has := scopesOf(claims)
	for _, want := range o.opt.Scopes {
		if !slices.Contains(has, want) {
			return Identity{}, o.refuse(r, http.StatusForbidden, "insufficient_scope", "the token lacks the scope "+want)
		}
	}
	principal, ok := o.principal(claims)
	if !ok {
		return Identity{}, o.refuse(r, http.StatusUnauthorized, "invalid_token", "the token has no usable claim "+o.opt.Claim)
	}
	return Identity{Principal: principal, Credential: o.credential(token.Subject, claims, has), Expires: token.Expiry, Refreshable: true}, nil
}

// credential names the client and the scope that a token was issued to, for a user:
// it stays the same when the client refreshes the token.
func (o *OIDC) credential(subject string, claims map[string]json.RawMessage, scopes []string) string {
	var client string
	for _, name := range []string{"client_id", "azp", "cid"} { // RFC 9068, OpenID Connect, others
		if json.Unmarshal(claims[name], &client) == nil && client != "" {
			break
		}
	}
	slices.Sort(scopes)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", o.opt.Issuer, subject, client, slices.Compact(scopes)))
	return "jwt:" + hex.EncodeToString(sum[:16])
}

// discover returns what signatures are checked with. A failed issuer is not asked for
// every request.
func (o *OIDC) discover(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	o.mu.Lock()
	defer o.mu.Unlock() // one asks, the others wait for the same answer
	if o.verifier != nil {
		return o.verifier, nil
	}
	if time.Since(o.failed) < retryIssuer {
		return nil, errors.New("it did not answer a moment ago")
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), o.opt.Client), o.opt.Issuer)
	if err != nil {
		o.failed = time.Now()
		return nil, err
	}
	// The audience is checked against the endpoint, which the library cannot know.
	forKeys := oidc.ClientContext(context.Background(), o.keys.client(o.opt.Client))
	o.verifier = provider.VerifierContext(forKeys, &oidc.Config{SkipClientIDCheck: true})
	return o.verifier, nil
}

func (o *OIDC) audience(a, path string) bool {
	if slices.Contains(o.opt.Audiences, a) {
		return true
	}
	a = strings.TrimRight(a, "/")
	return a == o.base || a == o.base+strings.TrimRight(path, "/")
}

func scopesOf(claims map[string]json.RawMessage) []string {
	for _, name := range []string{"scope", "scp"} {
		var text string
		if json.Unmarshal(claims[name], &text) == nil {
			return strings.Fields(text)
		}
		var list []string
		if json.Unmarshal(claims[name], &list) == nil {
			return list
		}
	}
	return nil
}

// principal names a person across issuers, so that nobody is taken for the local
// user or for somebody of another issuer.
func (o *OIDC) principal(claims map[string]json.RawMessage) (string, bool) {
	var who string
	if json.Unmarshal(claims[o.opt.Claim], &who) != nil || who == "" || strings.ContainsFunc(who, unicode.IsControl) {
		return "", false
	}
	p := o.opt.Issuer + "#" + who
	if len(p) > 500 { // more than a store takes
		sum := sha256.Sum256([]byte(p))
		p = "sha256#" + hex.EncodeToString(sum[:])
	}
	return p, true
}

func (o *OIDC) refuse(r *http.Request, status int, code, reason string) error {
	c := `Bearer resource_metadata="` + o.metadataURL(r.URL.Path) + `"`
	if code != "" {
		c += `, error="` + code + `", error_description="` + strings.ReplaceAll(reason, `"`, "'") + `"`
	}
	if len(o.opt.Scopes) > 0 {
		c += `, scope="` + strings.Join(o.opt.Scopes, " ") + `"`
	}
	return &RefusedError{Status: status, Challenge: c, Reason: reason}
}

// host is the name and port of our URL.
func (o *OIDC) host() string {
	u, _ := url.Parse(o.base) // checked by NewOIDC
	return u.Host
}

// MetadataPath is where RFC 9728 puts protected resource metadata.
const MetadataPath = "/.well-known/oauth-protected-resource"

// metadataURL is where RFC 9728 puts the metadata of an endpoint: between host and
// path.
func (o *OIDC) metadataURL(path string) string {
	u, _ := url.Parse(o.base) // checked by NewOIDC
	u.Path = MetadataPath + u.Path + path
	return u.String()
}

// Metadata implements [Describer].
func (o *OIDC) Metadata(path string, served func(path string) bool) ([]byte, bool) {
	u, _ := url.Parse(o.base)
	path = strings.TrimPrefix(path, u.Path)
	if path != "" && !served(path) {
		return nil, false
	}
	doc, err := json.Marshal(struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{o.base + path, []string{o.opt.Issuer}, o.opt.Scopes, []string{"header"}, "usher"})
	return doc, err == nil
}
