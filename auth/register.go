package auth

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
	"github.com/usher-mcp/usher/vault"
)

// redirect is where the answer of a browser login comes back, and which class of
// registration that takes.
type redirect struct {
	uri   string
	class string // "loopback", "web", or "fixed" for a configured address
}

// Classes of redirect addresses.
const (
	classLoopback = "loopback"
	classWeb      = "web"
	classFixed    = "fixed"
)

// appType is the application_type to register as.
func (r redirect) appType() string {
	if u, err := url.Parse(r.uri); err == nil && !loopbackName(u.Hostname()) {
		return "web"
	}
	return "native"
}

// group is what registrations are shared by: the port of a loopback address does
// not matter (RFC 8252, section 7.3), every other address does.
func (r redirect) group() string {
	if r.class == classLoopback {
		return classLoopback
	}
	return r.class + " " + r.uri
}

// registration is a client that this program registered, a record of kind
// vault.KindClient. There is one for each issuer and class of redirect address.
type registration struct {
	Client   client    `json:"client"`
	Issuer   string    `json:"issuer"`
	Redirect string    `json:"redirect_uri"`
	Group    string    `json:"group"`
	Created  time.Time `json:"created"`
	// SecretExpires is zero when the secret lasts.
	SecretExpires time.Time `json:"secret_expires,omitzero"`
	// Manage and Token let the registration be deleted (RFC 7592).
	Manage string `json:"registration_client_uri,omitempty"`
	Token  kept   `json:"registration_access_token,omitzero"`
	Bounds bounds `json:"bounds,omitzero"`
	// Localhost is set when the server takes http://localhost only.
	Localhost bool `json:"localhost,omitempty"`

	version int64
}

// LogValue keeps the secrets out of logs.
func (r registration) LogValue() slog.Value { return slog.StringValue(r.Client.ID) }

func registrationKey(bind, group string) vault.Key {
	return vault.LocalKey(vault.KindClient, clip(group)+" "+clip(bind))
}

// usable reports whether the registration still can be used with a redirect.
func (r *registration) usable(to redirect) bool {
	if !r.SecretExpires.IsZero() && time.Now().After(r.SecretExpires) {
		return false
	}
	return to.class == classLoopback || r.Redirect == to.uri
}

// identify finds out as whom to log in, in the order: configured client, client
// metadata document, stored registration, new registration. It may change the
// host of a loopback redirect to the one the server takes.
func (e *Engine) identify(ctx context.Context, w *web, p *provider, o config.OAuth, to *redirect, fresh bool) (client, error) {
	if c, ok, err := chosenClient(p, o); ok || err != nil {
		return c, err
	}
	known, err := e.loadRegistration(ctx, p.bind(), to.group())
	if err != nil {
		return client{}, err
	}
	if !fresh && known != nil && known.usable(*to) {
		known.adapt(to)
		return known.Client, nil
	}
	if p.meta.RegistrationEndpoint == "" {
		return client{}, noClient(p, *to)
	}
	r, err := e.register(ctx, w, p, *to, known)
	if err != nil {
		return client{}, err
	}
	r.adapt(to)
	return r.Client, nil
}

// adapt writes a loopback redirect as the server takes it.
func (r *registration) adapt(to *redirect) {
	if r.Localhost {
		to.uri = strings.Replace(to.uri, "//127.0.0.1:", "//localhost:", 1)
	}
}

// chosenClient is the client that the configuration names, if it does.
func chosenClient(p *provider, o config.OAuth) (client, bool, error) {
	switch {
	case o.ClientID != "":
		c := client{ID: o.ClientID, Secret: keep(o.ClientSecret), Source: SourceConfigured, Audience: p.audienceOf()}
		c.Method = pickMethod(p.meta.AuthMethods, o.ClientSecret != "")
		if c.Method == methodNone && o.ClientSecret != "" {
			c.Method = methodBasic // a secret that is configured is meant to be sent
		}
		if o.PrivateKey != "" {
			c.Key, c.Method = keep(o.PrivateKey), methodJWT
			if _, err := parseKey(o.PrivateKey); err != nil {
				return client{}, false, err
			}
		}
		return c, true, nil
	case o.ClientMetadataURL != "" && p.meta.ClientIDDocuments:
		if u, err := url.Parse(o.ClientMetadataURL); err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") == "" {
			return client{}, false, errors.New("oauth.clientMetadataUrl must be an https address with a path")
		}
		return client{ID: o.ClientMetadataURL, Method: methodNone, Source: SourceDocument}, true, nil
	}
	return client{}, false, nil
}

// audienceOf is whom assertions of this client are for.
func (p *provider) audienceOf() string {
	if p.issuer != "" {
		return p.issuer
	}
	return p.meta.TokenEndpoint
}

// noClient explains what a person has to set up.
func noClient(p *provider, to redirect) error {
	what := to.uri
	if to.class == classLoopback {
		what = "http://127.0.0.1/callback (any port; a provider that wants an exact one takes oauth.redirectUri)"
	}
	return fmt.Errorf("%w: %s does not register clients by itself; register one there by hand with the redirect address %s, then set oauth.clientId (and oauth.clientSecret if you get one)",
		ErrNoClient, hostOf(p.bind()), what)
}

func (e *Engine) loadRegistration(ctx context.Context, bind, group string) (*registration, error) {
	rec, err := e.store.Get(ctx, registrationKey(bind, group))
	if errors.Is(err, vault.ErrNotFound) || errors.Is(err, vault.ErrCorrupt) {
		return nil, nil // a damaged one is replaced
	}
	if err != nil {
		return nil, fmt.Errorf("look for a client registration: %w", err)
	}
	r := &registration{version: rec.Version}
	if json.Unmarshal(rec.Data, r) != nil {
		return nil, nil
	}
	return r, nil
}

// registerLease keeps two processes from registering twice.
const registerLease = 30 * time.Second

// register makes a new registration and keeps it. Of several processes one
// registers, the others use what it got: whatever is newer than before, which was
// found wanting.
func (e *Engine) register(ctx context.Context, w *web, p *provider, to redirect, before *registration) (*registration, error) {
	key := registrationKey(p.bind(), to.group())
	var out *registration
	err := vault.Hold(ctx, e.store, "register/"+key.Name, registerLease, func(ctx context.Context, l vault.Lease) error {
		now, err := e.loadRegistration(ctx, p.bind(), to.group())
		if err != nil {
			return err
		}
		if now != nil && (before == nil || now.version != before.version) && now.usable(to) {
			out = now
			return nil
		}
		if now == nil {
			if err := e.admitRegistration(ctx); err != nil {
				return err
			}
		}
		r, err := e.registerAt(ctx, w, p, to)
		if err != nil {
			return fmt.Errorf("register a client at %s: %w", hostOf(p.meta.RegistrationEndpoint), err)
		}
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		var version int64
		if now != nil {
			version = now.version
		}
		if _, err := e.store.PutFenced(ctx, key, data, version, l); err != nil {
			return fmt.Errorf("keep the client registration: %w", err)
		}
		out = r
		return nil
	})
	return out, err
}

// registerAt asks the server for a client, a second time with http://localhost when
// it does not take the address of the loopback interface.
func (e *Engine) registerAt(ctx context.Context, w *web, p *provider, to redirect) (*registration, error) {
	r, err := e.requestClient(ctx, w, p, to)
	if refusedWith(err, "invalid_redirect_uri", "invalid_client_metadata") && strings.Contains(to.uri, "//127.0.0.1:") {
		to.uri = strings.Replace(to.uri, "//127.0.0.1:", "//localhost:", 1)
		if r, err = e.requestClient(ctx, w, p, to); err == nil {
			r.Localhost = true
		}
	}
	return r, err
}

func (e *Engine) requestClient(ctx context.Context, w *web, p *provider, to redirect) (*registration, error) {
	u, err := checkEndpoint("the registration endpoint", p.meta.RegistrationEndpoint)
	if err != nil {
		return nil, err
	}
	ask := map[string]any{
		"client_name": e.opt.ClientName, "redirect_uris": []string{to.uri}, "application_type": to.appType(),
		"grant_types": p.grantTypes(), "response_types": []string{"code"}, "token_endpoint_auth_method": wantedMethod(p.meta.AuthMethods),
	}
	if e.opt.ClientURI != "" {
		ask["client_uri"] = e.opt.ClientURI
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
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
func (p *provider) grantTypes() []string {
	types := []string{"authorization_code", "refresh_token"}
	if p.meta.DeviceEndpoint != "" && (len(p.meta.GrantTypes) == 0 || slices.Contains(p.meta.GrantTypes, grantDevice)) {
		types = append(types, grantDevice)
	}
	return types
}

// wantedMethod prefers a public client, whose secret nobody can steal.
func wantedMethod(supported []string) string {
	if len(supported) == 0 || slices.Contains(supported, methodNone) {
		return methodNone
	}
	return pickMethod(supported, true)
}

// readRegistration reads the answer to a registration (RFC 7591).
func readRegistration(resp *http.Response, body []byte, p *provider, to redirect) (*registration, error) {
	te := &TokenError{Host: clean(resp.Request.URL.Host, 100), Status: resp.StatusCode, RetryAfter: retry.After(resp.Header.Get("Retry-After"))}
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
	c := client{ID: got.ClientID, Secret: keep(got.ClientSecret), Method: got.Method, Source: SourceDynamic, Audience: p.audienceOf()}
	switch c.Method {
	case methodNone, methodBasic, methodPost:
		if got.ClientSecret == "" {
			c.Method = methodNone
		}
	default:
		c.Method = pickMethod(p.meta.AuthMethods, got.ClientSecret != "")
	}
	r := &registration{Client: c, Issuer: p.bind(), Redirect: to.uri, Group: to.group(), Created: time.Now(), Bounds: p.bounds}
	if s := readLife(got.SecretExpires); s > 0 && got.ClientSecret != "" {
		var unix int64
		if json.Unmarshal(got.SecretExpires, &unix) == nil {
			r.SecretExpires = time.Unix(unix, 0)
		}
	}
	if u, err := checkEndpoint("registration_client_uri", got.Manage); err == nil && u.Host == resp.Request.URL.Host {
		r.Manage, r.Token = got.Manage, keep(got.Token)
	}
	return r, nil
}

// forgetClient throws a registration away that its server no longer knows, so that
// the next login registers anew. Only if it is still the same one.
func (e *Engine) forgetClient(ctx context.Context, bind, group string, c client) {
	if c.Source != SourceDynamic || group == "" {
		return
	}
	r, err := e.loadRegistration(ctx, bind, group)
	if err != nil || r == nil || r.Client.ID != c.ID {
		return
	}
	if err := e.store.Delete(ctx, registrationKey(bind, group), r.version); err != nil {
		e.log.Warn("a client registration could not be removed", "issuer", clean(bind, 200), "error", err)
	}
}
