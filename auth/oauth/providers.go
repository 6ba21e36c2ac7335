package oauth

import (
	"net/url"
	"strings"
)

// quirks are the ways in which a provider differs from the specification, as data.
// The configuration overrides each of them.
type quirks struct {
	resource  string            // "omit": the provider refuses the parameter
	params    map[string]string // Extra parameters of the authorization request
	endpoints ServerMetadata    // endpoints of providers that publish no metadata
}

// knownProviders lists providers by the host of their issuer; a leading dot covers all
// names below.
var knownProviders = map[string]quirks{
	"login.microsoftonline.com": {resource: "omit"}, // AADSTS9010010: resource beside scope
	"login.microsoftonline.us":  {resource: "omit"},
	"accounts.google.com": {
		resource: "omit",
		params:   map[string]string{"access_type": "offline", "prompt": "consent"}, // else no refresh token
	},
	"github.com": {endpoints: ServerMetadata{
		AuthorizationEndpoint: "https://github.com/login/oauth/authorize",
		TokenEndpoint:         "https://github.com/login/oauth/access_token",
		DeviceEndpoint:        "https://github.com/login/device/code",
	}},
	"slack.com": {endpoints: ServerMetadata{
		AuthorizationEndpoint: "https://slack.com/oauth/v2_user/authorize",
		TokenEndpoint:         "https://slack.com/api/oauth.v2.user.access",
	}},
}

// quirksOf finds the entry of an issuer; the zero value when there is none.
func quirksOf(issuer string) quirks {
	u, err := url.Parse(issuer)
	if err != nil {
		return quirks{}
	}
	host := strings.ToLower(u.Hostname())
	if q, ok := knownProviders[host]; ok {
		return q
	}
	for name := host; ; {
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return quirks{}
		}
		if q, ok := knownProviders["."+rest]; ok {
			return q
		}
		name = rest
	}
}
