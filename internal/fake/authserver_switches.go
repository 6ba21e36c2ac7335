package fake

import (
	"fmt"
	"slices"
	"strings"
)

// AuthSwitches returns the misbehaviours of an AuthServer. They are written like
// those of a Server; "on" names grant types.
func AuthSwitches() []Info {
	return slices.Concat(metadataSwitches, loginSwitches, tokenSwitches)
}

var metadataSwitches = []Info{
	{Name: "no-metadata", Doc: "publishes no metadata"},
	{Name: "only-oidc", Doc: "publishes only the OpenID Connect form"},
	{Name: "issuer", Value: "issuer", Doc: "its metadata is that of this issuer"},
	{Name: "no-pkce", Doc: "does not advertise code challenge methods"},
	{Name: "plain-pkce", Doc: "advertises the method plain only"},
	{Name: "authorize-url", Value: "URL", Doc: "names this authorization endpoint"},
	{Name: "token-url", Value: "URL", Doc: "names this token endpoint"},
	{Name: "register-url", Value: "URL", Doc: "names this registration endpoint"},
	{Name: "device-url", Value: "URL", Doc: "names this device endpoint"},
	{Name: "metadata-redirect", Value: "URL", Doc: "redirects requests for metadata there"},
	{Name: "metadata-status", Value: "status, 500", Doc: "answers requests for metadata with that status"},
	{Name: "metadata-html", Doc: "answers requests for metadata with a page"},
	{Name: "metadata-huge", Value: "KiB, 2048", Doc: "pads the metadata to that size"},
	{Name: "no-registration", Doc: "registers nobody"},
	{Name: "no-device", Doc: "has no device endpoint"},
	{Name: "no-revocation", Doc: "has no revocation endpoint"},
	{Name: "cimd", Doc: "takes client metadata documents"},
}

var loginSwitches = []Info{
	{Name: "iss-absent", Doc: "advertises iss and does not send it"},
	{Name: "iss-off", Doc: "neither advertises nor sends iss"},
	{Name: "iss-unadvertised", Doc: "sends iss without advertising it"},
	{Name: "iss-wrong", Value: "issuer, https://evil.example", Doc: "sends this iss"},
	{Name: "deny", Value: "error, access_denied", Doc: "answers the login with this error"},
	{Name: "deny-words", Value: "description", Doc: "describes the error so"},
	{Name: "no-resource", Doc: "answers a login that names a resource with invalid_target"},
	{Name: "register-secret", Value: "method, client_secret_basic", Doc: "gives registered clients a secret, for that method"},
	{Name: "register-status", Value: "status, 500", Doc: "answers registrations with that status"},
	{Name: "no-loopback-ip", Doc: "registers no address with the host 127.0.0.1"},
	{Name: "slow-down", Doc: "answers polls with slow_down"},
}

var tokenSwitches = []Info{
	{Name: "token-status", Value: "status, 503", Doc: "answers with that status and a page"},
	{Name: "token-slow", Value: "milliseconds, 1000", Doc: "waits before it answers"},
	{Name: "token-error", Value: "code, invalid_grant", Doc: "answers with this error"},
	{Name: "token-redirect", Value: "URL", Doc: "answers 307 to that URL"},
	{Name: "echo-request", Doc: "describes the error with the request"},
	{Name: "drop-after-commit", Doc: "does the work and closes the connection without an answer"},
	{Name: "drop-before", Doc: "closes the connection and does nothing"},
	{Name: "expires-in", Value: "JSON, null", Doc: "has this expires_in"},
	{Name: "no-rotate", Doc: "keeps the refresh token and does not repeat it"},
	{Name: "no-refresh", Doc: "gives no refresh token"},
	{Name: "narrow", Value: "scopes", Doc: "grants only these scopes"},
	{Name: "require-dpop", Doc: "wants DPoP proofs"},
	{Name: "dpop-nonce", Doc: "wants a nonce in DPoP proofs, here and at resources"},
}

func parseAuthSwitch(text string) (Switch, error) {
	parts := strings.Split(text, ";")
	name, value, _ := strings.Cut(parts[0], "=")
	if !slices.ContainsFunc(AuthSwitches(), func(i Info) bool { return i.Name == name }) {
		return Switch{}, fmt.Errorf("unknown switch %q of an authorization server", name)
	}
	return Switch{Name: name, Value: value}.limit(text, parts[1:])
}

func mustParseAuth(text string) Switch {
	sw, err := parseAuthSwitch(text)
	if err != nil {
		panic("fake: " + err.Error())
	}
	return sw
}

func newAuthSwitches(texts []string) *switchSet {
	set := &switchSet{on: map[string]*Switch{}}
	for _, t := range texts {
		set.set(mustParseAuth(t))
	}
	return set
}
