package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/retry"
)

// Redirect is where the answer of a browser login comes back, and which class of
// registration that takes.
type Redirect struct {
	URI   string
	Class string // "loopback", or "fixed" for a configured address
}

// Classes of redirect addresses.
const (
	ClassLoopback = "loopback"
	ClassFixed    = "fixed"
)

// appType is the application_type to register as.
func (r Redirect) appType() string {
	if u, err := url.Parse(r.URI); err == nil && !IsLoopback(u.Hostname()) {
		return "web"
	}
	return "native"
}

// Group is what registrations are shared by: the port of a loopback address does
// not matter (RFC 8252, section 7.3), every other address does.
func (r Redirect) Group() string {
	if r.Class == ClassLoopback {
		return ClassLoopback
	}
	return r.Class + " " + r.URI
}

// Registration is a client that this program registered at an authorization server
// (RFC 7591).
type Registration struct {
	Client   Credentials `json:"client"`
	Issuer   string      `json:"issuer"`
	Redirect string      `json:"redirect_uri"`
	Group    string      `json:"group"`
	Created  time.Time   `json:"created"`
	// SecretExpires is zero when the secret lasts.
	SecretExpires time.Time `json:"secret_expires,omitzero"`
	// Manage and Token let the registration be deleted (RFC 7592).
	Manage string       `json:"registration_client_uri,omitempty"`
	Token  StoredSecret `json:"registration_access_token,omitzero"`
	Bounds Bounds       `json:"bounds,omitzero"`
	// Localhost is set when the server takes http://localhost only.
	Localhost bool `json:"localhost,omitempty"`
}

// LogValue keeps the secrets out of logs.
func (r Registration) LogValue() slog.Value { return slog.StringValue(r.Client.ID) }

// Usable reports whether the registration still can be used with a redirect.
func (r *Registration) Usable(to Redirect) bool {
	if !r.SecretExpires.IsZero() && time.Now().After(r.SecretExpires) {
		return false
	}
	return to.Class == ClassLoopback || r.Redirect == to.URI
}

// Adapt writes a loopback redirect as the server takes it.
func (r *Registration) Adapt(to *Redirect) {
	if r.Localhost {
		to.URI = strings.Replace(to.URI, "//127.0.0.1:", "//localhost:", 1)
	}
}

// ConfiguredClient is the client that the configuration names, if it does.
func ConfiguredClient(p *Provider, o config.OAuth) (Credentials, bool, error) {
	switch {
	case o.ClientID != "":
		c := Credentials{ID: o.ClientID, Secret: NewStoredSecret(o.ClientSecret), Source: SourceConfigured, Audience: p.audienceOf()}
		c.Method = pickMethod(p.Metadata.AuthMethods, o.ClientSecret != "")
		if c.Method == MethodNone && o.ClientSecret != "" {
			c.Method = MethodBasic // a secret that is configured is meant to be sent
		}
		if o.PrivateKey != "" {
			c.Key, c.Method = NewStoredSecret(o.PrivateKey), methodJWT
			if _, err := parseKey(o.PrivateKey); err != nil {
				return Credentials{}, false, err
			}
		}
		return c, true, nil
	case o.ClientMetadataURL != "" && p.Metadata.ClientIDDocuments:
		if u, err := url.Parse(o.ClientMetadataURL); err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") == "" {
			return Credentials{}, false, errors.New("oauth.clientMetadataUrl must be an https address with a path")
		}
		return Credentials{ID: o.ClientMetadataURL, Method: MethodNone, Source: SourceDocument}, true, nil
	}
	return Credentials{}, false, nil
}

// audienceOf is whom assertions of this client are for.
func (p *Provider) audienceOf() string {
	if p.Issuer != "" {
		return p.Issuer
	}
	return p.Metadata.TokenEndpoint
}

// NoClientError explains what a person has to set up.
func NoClientError(p *Provider, to Redirect) error {
	what := to.URI
	if to.Class == ClassLoopback {
		what = "http://127.0.0.1/callback (any port; a provider that wants an exact one takes oauth.redirectUri)"
	}
	return fmt.Errorf("%w: %s does not register clients by itself; register one there by hand with the redirect address %s, then set oauth.clientId (and oauth.clientSecret if you get one)",
		ErrNoClient, HostOf(p.Binding()), what)
}

// Register asks the server for a client, a second time with http://localhost when
// it does not take the address of the loopback interface.
func (w *Client) Register(ctx context.Context, p *Provider, to Redirect, name string) (*Registration, error) {
	r, err := w.requestClient(ctx, p, to, name)
	if RefusedWith(err, "invalid_redirect_uri", "invalid_client_metadata") && strings.Contains(to.URI, "//127.0.0.1:") {
		to.URI = strings.Replace(to.URI, "//127.0.0.1:", "//localhost:", 1)
		if r, err = w.requestClient(ctx, p, to, name); err == nil {
			r.Localhost = true
		}
	}
	return r, err
}

func (w *Client) requestClient(ctx context.Context, p *Provider, to Redirect, name string) (*Registration, error) {
	u, err := checkEndpoint("the registration endpoint", p.Metadata.RegistrationEndpoint)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{
		"client_name": name, "redirect_uris": []string{to.URI}, "application_type": to.appType(),
		"grant_types": p.grantTypes(), "response_types": []string{"code"}, "token_endpoint_auth_method": RegistrationMethod(p.Metadata.AuthMethods),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, TokenTimeout)
	defer cancel()
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	resp, text, err := w.exchange(ctx, http.MethodPost, u, header, string(body))
	if err != nil {
		return nil, err
	}
	return readRegistration(resp, text, p, to)
}

// grantTypes is what a registration may do: what the flows need, as far as the
// server says it has it.
func (p *Provider) grantTypes() []string {
	types := []string{"authorization_code", "refresh_token"}
	if p.Metadata.DeviceEndpoint != "" && (len(p.Metadata.GrantTypes) == 0 || slices.Contains(p.Metadata.GrantTypes, GrantTypeDevice)) {
		types = append(types, GrantTypeDevice)
	}
	return types
}

// RegistrationMethod prefers a public client, whose secret nobody can steal.
func RegistrationMethod(supported []string) string {
	if len(supported) == 0 || slices.Contains(supported, MethodNone) {
		return MethodNone
	}
	return pickMethod(supported, true)
}

// readRegistration reads the answer to a registration (RFC 7591).
func readRegistration(resp *http.Response, body []byte, p *Provider, to Redirect) (*Registration, error) {
	te := &TokenError{Host: Clean(resp.Request.URL.Host, 100), Status: resp.StatusCode, RetryAfter: retry.After(resp.Header.Get("Retry-After"))}
	var got struct {
		ClientID      string          `json:"client_id"`
		ClientSecret  string          `json:"client_secret"`
		Method        string          `json:"token_endpoint_auth_method"`
		SecretExpires json.RawMessage `json:"client_secret_expires_at"`
		Manage        string          `json:"registration_client_uri"`
		Token         string          `json:"registration_access_token"`
	}
	fields, problem := readFields(resp.Header.Get("Content-Type"), body)
	switch {
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		te.Reason = "it cannot register clients now"
	case resp.StatusCode >= 400 && problem == "":
		te.refusal(fields, textField(fields, "error"), nil)
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		te.Reason = "it does not register this client"
	case json.Unmarshal(body, &got) != nil || got.ClientID == "" || hasControl(got.ClientID):
		te.Reason = "the answer names no client"
	case len(got.ClientID)+len(got.ClientSecret)+len(got.Manage)+len(got.Token) > limit.IssuedTokenBytes:
		te.Reason = "the answer is too large"
	}
	if te.Reason != "" || te.Code != "" {
		return nil, te
	}
	c := Credentials{ID: got.ClientID, Secret: NewStoredSecret(got.ClientSecret), Method: got.Method, Source: SourceDynamic, Audience: p.audienceOf()}
	switch c.Method {
	case MethodNone, MethodBasic, MethodPost:
		if got.ClientSecret == "" {
			c.Method = MethodNone
		}
	default:
		c.Method = pickMethod(p.Metadata.AuthMethods, got.ClientSecret != "")
	}
	r := &Registration{Client: c, Issuer: p.Binding(), Redirect: to.URI, Group: to.Group(), Created: time.Now(), Bounds: p.Bounds}
	if s := readLife(got.SecretExpires); s > 0 && got.ClientSecret != "" {
		var unix int64
		if json.Unmarshal(got.SecretExpires, &unix) == nil {
			r.SecretExpires = time.Unix(unix, 0)
		}
	}
	if u, err := checkEndpoint("registration_client_uri", got.Manage); err == nil && u.Host == resp.Request.URL.Host {
		r.Manage, r.Token = got.Manage, NewStoredSecret(got.Token)
	}
	return r, nil
}
