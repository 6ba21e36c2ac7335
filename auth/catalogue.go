package auth

import (
	"net/url"
	"strings"
)

// quirks are the ways in which a provider differs from the specification, as data.
// The configuration overrides each of them.
type quirks struct {
	resource  string            // "omit": the provider refuses the parameter
	params    map[string]string // extra parameters of the authorization request
	endpoints serverMetadata    // endpoints of providers that publish no metadata
}

// catalogue lists providers by the host of their issuer; a leading dot covers all
// names below.
var catalogue = map[string]quirks{
	"login.microsoftonline.com": {resource: "omit"}, // AADSTS9010010: resource beside scope
	"login.microsoftonline.us":  {resource: "omit"},
	"accounts.google.com": {
		resource: "omit",
		params:   map[string]string{"access_type": "offline", "prompt": "consent"}, // else no refresh token
	},
	"github.com": {endpoints: serverMetadata{
		AuthorizationEndpoint: "https://github.com/login/oauth/authorize",
		TokenEndpoint:         "https://github.com/login/oauth/access_token",
		DeviceEndpoint:        "https://github.com/login/device/code",
	}},
	"slack.com": {endpoints: serverMetadata{
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
	if q, ok := catalogue[host]; ok {
		return q
	}
	for name := host; ; {
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return quirks{}
		}
		if q, ok := catalogue["."+rest]; ok {
			return q
		}
		name = rest
	}
}
