package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// ServerMetadata is what an authorization server publishes about itself (RFC 8414
// and OpenID Connect Discovery), as far as it is used.
type ServerMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	DeviceEndpoint        string   `json:"device_authorization_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	ScopesSupported       []string `json:"scopes_supported"`
	GrantTypes            []string `json:"grant_types_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	SigningAlgs           []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	ClientIDDocuments     bool     `json:"client_id_metadata_document_supported"`
	IssParameter          bool     `json:"authorization_response_iss_parameter_supported"`
	DPoPAlgs              []string `json:"dpop_signing_alg_values_supported"`

	FoundAt string `json:"-"` // where it was found; "" when there is no document
	assumed bool   // there is no document: 2025-03-26 defaults, or configuration
}

// SupportsPKCE reports whether S256 may be used: advertised, or no document to advertise it.
func (m *ServerMetadata) SupportsPKCE() bool {
	return m.assumed || slices.Contains(m.ChallengeMethods, "S256")
}

// check refuses endpoints that must not be spoken to.
func (m *ServerMetadata) check() error {
	for _, e := range []struct{ what, address string }{
		{"authorization_endpoint", m.AuthorizationEndpoint},
		{"token_endpoint", m.TokenEndpoint},
		{"registration_endpoint", m.RegistrationEndpoint},
		{"device_authorization_endpoint", m.DeviceEndpoint},
		{"revocation_endpoint", m.RevocationEndpoint},
	} {
		if e.address == "" {
			continue
		}
		if _, err := checkEndpoint(e.what, e.address); err != nil {
			return err
		}
	}
	if m.TokenEndpoint == "" {
		return errors.New("it names no token_endpoint")
	}
	return nil
}

// metadataPlaces lists where an issuer's metadata may be, in the protocol's order.
func metadataPlaces(issuer *url.URL) []string {
	const oauth, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	root, path := base(issuer), strings.TrimSuffix(issuer.EscapedPath(), "/")
	if path == "" {
		return []string{root + oauth, root + oidc}
	}
	return []string{root + oauth + path, root + oidc + path, root + path + oidc}
}

// findMetadata fetches the metadata of an issuer. Nil means that it publishes none.
func (w *Client) findMetadata(ctx context.Context, issuer string) (*ServerMetadata, error) {
	u, err := checkEndpoint("the authorization server", issuer)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the authorization server %s is named with a query or fragment", Clean(u.Host, 100))
	}
	ctx = withProbePort(ctx, u)
	for _, place := range metadataPlaces(u) {
		m, err := w.metadataAt(ctx, place)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Identical, not equivalent: anything else lets one server speak for another.
		if m.Issuer != issuer {
			return nil, fmt.Errorf("the metadata at %s is that of the issuer %q and not of %q; set oauth.issuer or oauth.metadataUrl if you trust it",
				HostOf(place), Clean(m.Issuer, 200), Clean(issuer, 200))
		}
		return m, nil
	}
	return nil, nil
}

func (w *Client) metadataAt(ctx context.Context, place string) (*ServerMetadata, error) {
	m := &ServerMetadata{FoundAt: place}
	if err := w.document(ctx, "the authorization server's metadata", place, m); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("the authorization server's metadata at %s: %w", HostOf(place), err)
	}
	return m, nil
}
