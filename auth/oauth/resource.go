package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ResourceMetadata is what a server publishes about itself (RFC 9728).
type ResourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`

	FoundAt string `json:"-"` // where it was found
}

// FindResourceMetadata fetches the metadata of the server: from the address its challenge
// names, else from the well-known places in the order the protocol gives. Nil means
// that the server publishes none.
func (w *Client) FindResourceMetadata(ctx context.Context, server *url.URL, c Challenge) (*ResourceMetadata, error) {
	for _, place := range resourcePlaces(server, c) {
		m := &ResourceMetadata{FoundAt: place}
		err := w.document(ctx, "the server's resource metadata", place, m)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := ResourceCovers(m.Resource, server); err != nil {
			return nil, fmt.Errorf("the resource metadata at %s is not for this server: %w", HostOf(place), err)
		}
		return m, nil
	}
	return nil, nil
}

// resourcePlaces lists where the metadata may be.
func resourcePlaces(server *url.URL, c Challenge) []string {
	const wellKnown = "/.well-known/oauth-protected-resource"
	var places []string
	if c.ResourceMetadata != "" {
		places = append(places, c.ResourceMetadata)
	}
	if path := strings.TrimSuffix(server.EscapedPath(), "/"); path != "" {
		query := ""
		if server.RawQuery != "" {
			query = "?" + server.RawQuery
		}
		places = append(places, base(server)+wellKnown+path+query)
	}
	return append(places, base(server)+wellKnown)
}

// HostOf is what messages say about an address.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address without host"
	}
	return Clean(u.Host, 100)
}
