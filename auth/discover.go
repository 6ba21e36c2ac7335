package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
)

// Values of oauth.resource.
const (
	resourceExact = "exact"
	resourceOmit  = "omit"
)

// maxIssuers bounds how many authorization servers of one list are tried.
const maxIssuers = 4

// provider is everything about where to log in to one server: the result of
// discovery, with what is configured on top.
type provider struct {
	server    *url.URL
	bounds    bounds
	challenge Challenge
	prm       *resourceMetadata // nil when the server publishes none
	meta      *serverMetadata
	issuer    string // "" only when endpoints are configured without it
	resource  string // value of the resource parameter; "" leaves it out
	audience  string
	params    map[string]string // extra parameters of the authorization request
}

// bind is what credentials are kept under: the issuer, or where there is none the
// origin of the token endpoint.
func (p *provider) bind() string {
	if p.issuer != "" {
		return p.issuer
	}
	if u, err := url.Parse(p.meta.TokenEndpoint); err == nil {
		return origin(u)
	}
	return p.meta.TokenEndpoint
}

// discover finds out where to log in to srv. With a nil challenge the server is
// asked for one first.
func (w *web) discover(ctx context.Context, srv config.Server, c *Challenge) (*provider, error) {
	server, err := url.Parse(srv.URL)
	if err != nil || server.Host == "" {
		return nil, fmt.Errorf("server %s has no address to log in to; a stdio server takes its credentials from env", srv.Name)
	}
	o := oauthOf(srv)
	p := &provider{server: server, bounds: w.bounds}
	if o.Discovery.Mode == "off" {
		if p.meta, err = configuredOnly(o); err == nil {
			p.issuer = o.Issuer
			err = p.settle(o)
		}
		return p, explainServer(srv, err)
	}
	if _, err := checkEndpoint("the server's address", srv.URL); err != nil {
		return nil, explainServer(srv, err)
	}
	if c == nil {
		got := w.probe(ctx, srv.URL)
		c = &got
	}
	p.challenge = *c
	if p.prm, err = w.findResource(ctx, server, p.challenge); err != nil {
		return nil, explainServer(srv, err)
	}
	if err := p.findIssuer(ctx, w, o); err != nil {
		return nil, explainServer(srv, err)
	}
	return p, explainServer(srv, p.settle(o))
}

func explainServer(srv config.Server, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("find out where to log in to %s: %w", srv.Name, err)
}

// configuredOnly takes the endpoints from the configuration alone.
func configuredOnly(o config.OAuth) (*serverMetadata, error) {
	m := &serverMetadata{assumed: true, Issuer: o.Issuer}
	override(m, o)
	if m.TokenEndpoint == "" {
		return nil, errors.New("oauth.discovery is off, so oauth.tokenEndpoint and, for the browser, oauth.authorizationEndpoint must be set")
	}
	return m, m.check()
}

// override puts configured endpoints over found ones.
func override(m *serverMetadata, o config.OAuth) {
	for _, f := range []struct {
		p *string
		v string
	}{
		{&m.AuthorizationEndpoint, o.AuthorizationEndpoint},
		{&m.TokenEndpoint, o.TokenEndpoint},
		{&m.DeviceEndpoint, o.DeviceAuthorizationEndpoint},
	} {
		if f.v != "" {
			*f.p = f.v
		}
	}
}

// findIssuer picks the authorization server and gets its metadata.
func (p *provider) findIssuer(ctx context.Context, w *web, o config.OAuth) error {
	if o.MetadataURL != "" {
		return p.useMetadataURL(ctx, w, o)
	}
	issuers, err := p.issuers(o)
	if err != nil {
		return err
	}
	var first error
	for _, issuer := range issuers[:min(len(issuers), maxIssuers)] {
		m, err := w.findMetadata(ctx, issuer)
		if err == nil && m == nil {
			m, err = p.withoutMetadata(issuer, o)
		}
		if err == nil {
			p.meta, p.issuer = m, issuer
			if m.from != "" {
				w.vouch(p, issuer)
			}
			override(m, o)
			return m.check()
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// useMetadataURL reads the document that the configuration vouches for.
func (p *provider) useMetadataURL(ctx context.Context, w *web, o config.OAuth) error {
	m, err := w.metadataAt(ctx, o.MetadataURL)
	if err != nil {
		return fmt.Errorf("oauth.metadataUrl: %w", err)
	}
	if o.Issuer != "" && m.Issuer != o.Issuer {
		return fmt.Errorf("the document at oauth.metadataUrl is that of the issuer %q and not of oauth.issuer", clean(m.Issuer, 200))
	}
	p.meta, p.issuer = m, m.Issuer
	w.vouch(p, m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint, m.DeviceEndpoint, m.RevocationEndpoint)
	override(m, o)
	return m.check()
}

// issuers lists the authorization servers to try.
func (p *provider) issuers(o config.OAuth) ([]string, error) {
	var published []string
	if p.prm != nil {
		published = p.prm.AuthorizationServers
	}
	if o.Issuer == "" {
		if len(published) > 0 {
			return published, nil
		}
		return []string{base(p.server)}, nil // as 2025-03-26 has it
	}
	same := func(s string) bool { return strings.TrimSuffix(s, "/") == strings.TrimSuffix(o.Issuer, "/") }
	if len(published) > 0 && !slices.ContainsFunc(published, same) {
		return nil, fmt.Errorf("oauth.issuer is %s, but the server now names %s; the configured client belongs to the former, so check with the provider before changing it",
			clean(o.Issuer, 200), clean(strings.Join(published, ", "), 300))
	}
	return []string{o.Issuer}, nil
}

// withoutMetadata is for an issuer that publishes nothing: a known provider,
// configured endpoints, or the defaults of 2025-03-26.
func (p *provider) withoutMetadata(issuer string, o config.OAuth) (*serverMetadata, error) {
	m := &serverMetadata{assumed: true, Issuer: issuer}
	if known := quirksOf(issuer).endpoints; known.TokenEndpoint != "" {
		m.AuthorizationEndpoint, m.TokenEndpoint, m.DeviceEndpoint = known.AuthorizationEndpoint, known.TokenEndpoint, known.DeviceEndpoint
		return m, nil
	}
	if o.TokenEndpoint != "" {
		return m, nil // overridden by the caller
	}
	if p.prm != nil && len(p.prm.AuthorizationServers) > 0 {
		return nil, fmt.Errorf("the authorization server %s publishes no metadata; set oauth.metadataUrl, or oauth.authorizationEndpoint and oauth.tokenEndpoint", clean(issuer, 200))
	}
	m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint = issuer+"/authorize", issuer+"/token", issuer+"/register"
	return m, nil
}

// resourceChoice is what decides about the resource parameter: the definition of the
// server, else what is known of a provider at which a person has registered a client
// for this server. A refusal of the provider never changes it: leaving the parameter
// out would hand an unrestricted token to a server that may have named a foreign
// authorization server.
func resourceChoice(o config.OAuth, issuer string) string {
	if o.Resource == "" && o.ClientID != "" {
		return quirksOf(issuer).resource
	}
	return o.Resource
}

// settle decides resource, audience and extra parameters: what is configured, else
// what is known of the provider, else what the specification says.
func (p *provider) settle(o config.OAuth) error {
	q := quirksOf(p.issuer)
	choice := resourceChoice(o, p.issuer)
	switch choice {
	case "", resourceExact:
		p.resource = canonical(p.server)
		if p.prm != nil {
			p.resource = p.prm.Resource
		}
	case resourceOmit:
	default:
		if u, err := url.Parse(choice); err != nil || u.Scheme == "" || u.Fragment != "" {
			return errors.New("oauth.resource is neither exact, omit nor an absolute URI")
		}
		p.resource = choice
	}
	p.audience = o.Audience
	p.params = map[string]string{}
	for _, source := range []map[string]string{q.params, o.AuthorizeParams} {
		for k, v := range source {
			p.params[k] = v
		}
	}
	return nil
}

// oauthOf returns what is configured about the login to a server, as a value.
func oauthOf(srv config.Server) config.OAuth {
	if srv.OAuth == nil {
		return config.OAuth{}
	}
	return *srv.OAuth
}
