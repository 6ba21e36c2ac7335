package oauth

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
	ResourceOmit  = "omit"
)

// maxIssuers bounds how many authorization servers of one list are tried.
const maxIssuers = 4

// Provider is everything about where to log in to one server: the result of
// discovery, with what is configured on top.
type Provider struct {
	server           *url.URL
	Bounds           Bounds
	Challenge        Challenge
	ResourceMetadata *ResourceMetadata // nil when the server publishes none
	Metadata         *ServerMetadata
	Issuer           string // "" only when endpoints are configured without it
	Resource         string // value of the resource parameter; "" leaves it out
	Audience         string
	params           map[string]string // Extra parameters of the authorization request
}

// Binding is what credentials are kept under: the issuer, or where there is none the
// origin of the token endpoint.
func (p *Provider) Binding() string {
	if p.Issuer != "" {
		return p.Issuer
	}
	if u, err := url.Parse(p.Metadata.TokenEndpoint); err == nil {
		return Origin(u)
	}
	return p.Metadata.TokenEndpoint
}

// Discover finds out where to log in to srv. With a nil challenge the server is
// asked for one first.
func (w *Client) Discover(ctx context.Context, srv config.Server, c *Challenge) (*Provider, error) {
	server, err := url.Parse(srv.URL)
	if err != nil || server.Host == "" {
		return nil, fmt.Errorf("server %s has no address to log in to; a stdio server takes its credentials from env", srv.Name)
	}
	o := SettingsOf(srv)
	p := &Provider{server: server, Bounds: w.bounds}
	if o.Discovery.Mode == "off" {
		if p.Metadata, err = configuredOnly(o); err == nil {
			p.Issuer = o.Issuer
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
	p.Challenge = *c
	if p.ResourceMetadata, err = w.FindResourceMetadata(ctx, server, p.Challenge); err != nil {
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
func configuredOnly(o config.OAuth) (*ServerMetadata, error) {
	m := &ServerMetadata{assumed: true, Issuer: o.Issuer}
	override(m, o)
	if m.TokenEndpoint == "" {
		return nil, errors.New("oauth.discovery is off, so oauth.tokenEndpoint and, for the browser, oauth.authorizationEndpoint must be set")
	}
	return m, m.check()
}

// override puts configured endpoints over found ones.
func override(m *ServerMetadata, o config.OAuth) {
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
func (p *Provider) findIssuer(ctx context.Context, w *Client, o config.OAuth) error {
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
			p.Metadata, p.Issuer = m, issuer
			if m.FoundAt != "" {
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
func (p *Provider) useMetadataURL(ctx context.Context, w *Client, o config.OAuth) error {
	m, err := w.metadataAt(ctx, o.MetadataURL)
	if err != nil {
		return fmt.Errorf("oauth.metadataUrl: %w", err)
	}
	if o.Issuer != "" && m.Issuer != o.Issuer {
		return fmt.Errorf("the document at oauth.metadataUrl is that of the issuer %q and not of oauth.issuer", Clean(m.Issuer, 200))
	}
	p.Metadata, p.Issuer = m, m.Issuer
	w.vouch(p, m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint, m.DeviceEndpoint, m.RevocationEndpoint)
	override(m, o)
	return m.check()
}

// issuers lists the authorization servers to try.
func (p *Provider) issuers(o config.OAuth) ([]string, error) {
	var published []string
	if p.ResourceMetadata != nil {
		published = p.ResourceMetadata.AuthorizationServers
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
			Clean(o.Issuer, 200), Clean(strings.Join(published, ", "), 300))
	}
	return []string{o.Issuer}, nil
}

// withoutMetadata is for an issuer that publishes nothing: a known provider,
// configured endpoints, or the defaults of 2025-03-26.
func (p *Provider) withoutMetadata(issuer string, o config.OAuth) (*ServerMetadata, error) {
	m := &ServerMetadata{assumed: true, Issuer: issuer}
	if known := quirksOf(issuer).endpoints; known.TokenEndpoint != "" {
		m.AuthorizationEndpoint, m.TokenEndpoint, m.DeviceEndpoint = known.AuthorizationEndpoint, known.TokenEndpoint, known.DeviceEndpoint
		return m, nil
	}
	if o.TokenEndpoint != "" {
		return m, nil // overridden by the caller
	}
	if p.ResourceMetadata != nil && len(p.ResourceMetadata.AuthorizationServers) > 0 {
		return nil, fmt.Errorf("the authorization server %s publishes no metadata; set oauth.metadataUrl, or oauth.authorizationEndpoint and oauth.tokenEndpoint", Clean(issuer, 200))
	}
	m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint = issuer+"/authorize", issuer+"/token", issuer+"/register"
	return m, nil
}

// ResourceChoice is what decides about the resource parameter: the definition of the
// server, else what is known of a provider at which a person has registered a client
// for this server. A refusal of the provider never changes it: leaving the parameter
// out would hand an unrestricted token to a server that may have named a foreign
// authorization server.
func ResourceChoice(o config.OAuth, issuer string) string {
	if o.Resource == "" && o.ClientID != "" {
		return quirksOf(issuer).resource
	}
	return o.Resource
}

// settle decides resource, audience and extra parameters: what is configured, else
// what is known of the provider, else what the specification says.
func (p *Provider) settle(o config.OAuth) error {
	q := quirksOf(p.Issuer)
	choice := ResourceChoice(o, p.Issuer)
	switch choice {
	case "", resourceExact:
		p.Resource = CanonicalResource(p.server)
		if p.ResourceMetadata != nil {
			p.Resource = p.ResourceMetadata.Resource
		}
	case ResourceOmit:
	default:
		if u, err := url.Parse(choice); err != nil || u.Scheme == "" || u.Fragment != "" {
			return errors.New("oauth.resource is neither exact, omit nor an absolute URI")
		}
		p.Resource = choice
	}
	p.Audience = o.Audience
	p.params = map[string]string{}
	for _, source := range []map[string]string{q.params, o.AuthorizeParams} {
		for k, v := range source {
			p.params[k] = v
		}
	}
	return nil
}

// SettingsOf returns what is configured about the login to a server, as a value.
func SettingsOf(srv config.Server) config.OAuth {
	if srv.OAuth == nil {
		return config.OAuth{}
	}
	return *srv.OAuth
}
