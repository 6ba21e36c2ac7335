package config

import (
	"fmt"
	"maps"
	"slices"
)

// fieldKind says how a string of a server is to be treated when it is masked.
type fieldKind int

const (
	plainField   fieldKind = iota // a word of the format, an address, a name
	commandField                  // a program or a path
	argField                      // one argument of a command line
	valueField                    // a value whose key tells what it is
	urlField                      // an address that may carry credentials
	secretField                   // always a credential
)

// field names one string of a server.
type field struct {
	path string // "env.TOKEN", "args[2]", "oauth.clientSecret"
	key  string // the last part: "TOKEN"
	kind fieldKind
}

// walk calls f for every string of s that may hold a placeholder, in a fixed
// order, and stores what f returns. It is the one list of those fields:
// resolving, hashing, masking and the search for placeholders all use it. It
// changes s, so callers pass a clone; the first error ends it.
func (s *Server) walk(f func(field, string) (string, error)) error {
	w := &walker{f: f}
	w.str("command", commandField, &s.Command)
	w.list("args", argField, s.Args)
	w.dict("env", valueField, s.Env)
	w.str("cwd", commandField, &s.Cwd)
	w.str("url", urlField, &s.URL)
	w.dict("headers", valueField, s.Headers)
	w.str("headersFrom", valueField, &s.HeadersFrom)
	w.str("card", urlField, &s.Card)
	if s.OAuth != nil {
		w.oauth(s.OAuth)
	}
	return w.err
}

type walker struct {
	f   func(field, string) (string, error)
	err error
}

func (w *walker) oauth(o *OAuth) {
	w.str("oauth.clientId", plainField, &o.ClientID)
	w.str("oauth.clientSecret", secretField, &o.ClientSecret)
	w.str("oauth.clientMetadataUrl", urlField, &o.ClientMetadataURL)
	w.str("oauth.privateKey", secretField, &o.PrivateKey)
	w.list("oauth.scopes", plainField, o.Scopes)
	w.str("oauth.redirectUri", urlField, &o.RedirectURI)
	w.str("oauth.issuer", urlField, &o.Issuer)
	w.str("oauth.metadataUrl", urlField, &o.MetadataURL)
	w.str("oauth.authorizationEndpoint", urlField, &o.AuthorizationEndpoint)
	w.str("oauth.tokenEndpoint", urlField, &o.TokenEndpoint)
	w.str("oauth.deviceAuthorizationEndpoint", urlField, &o.DeviceAuthorizationEndpoint)
	w.str("oauth.resource", urlField, &o.Resource)
	w.str("oauth.audience", urlField, &o.Audience)
	w.dict("oauth.authorizeParams", valueField, o.AuthorizeParams)
	w.str("oauth.assertion", secretField, &o.Assertion)
	w.list("oauth.discovery.allow", plainField, o.Discovery.Allow)
	if o.IDP != nil {
		w.str("oauth.idp.issuer", urlField, &o.IDP.Issuer)
		w.str("oauth.idp.tokenEndpoint", urlField, &o.IDP.TokenEndpoint)
		w.str("oauth.idp.clientId", plainField, &o.IDP.ClientID)
		w.str("oauth.idp.clientSecret", secretField, &o.IDP.ClientSecret)
		w.str("oauth.idp.idToken", secretField, &o.IDP.IDToken)
	}
}

func (w *walker) str(path string, kind fieldKind, p *string) {
	if w.err != nil || *p == "" {
		return
	}
	*p, w.err = w.f(field{path: path, key: lastPart(path), kind: kind}, *p)
}

func (w *walker) list(path string, kind fieldKind, list []string) {
	for i := range list {
		if w.err != nil {
			return
		}
		list[i], w.err = w.f(field{path: fmt.Sprintf("%s[%d]", path, i), key: lastPart(path), kind: kind}, list[i])
	}
}

func (w *walker) dict(path string, kind fieldKind, m map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if w.err != nil {
			return
		}
		m[k], w.err = w.f(field{path: path + "." + k, key: k, kind: kind}, m[k])
	}
}

func lastPart(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[i+1:]
		}
	}
	return path
}
