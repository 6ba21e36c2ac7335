package config

import (
	"encoding/json"
	"time"

	"github.com/usher-mcp/usher/config/jsonc"
)

// Entry writes the server as it stands in a file: only what differs from the
// defaults, placeholders as they are.
func (s Server) Entry() (json.RawMessage, error) {
	e := entry{
		Type: s.entryType(), Title: s.Title, Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd,
		URL: s.URL, Headers: s.Headers, HeadersFrom: s.HeadersFrom, Card: s.Card,
		Supervision: s.Supervision.entry(), Timeouts: s.Timeouts.entry(),
		Trust: s.Trust, Singleton: s.Singleton, Disabled: s.Disabled, Tags: s.Tags,
		OAuth: s.OAuth.entry(), Foreign: s.Foreign.entry(),
	}
	if s.Lazy != nil && !*s.Lazy {
		e.Lazy = s.Lazy
	}
	// A server made by a program has no Lazy, and its zero KeepAlive says nothing.
	if s.Lazy != nil && s.KeepAlive != DefaultKeepAlive {
		e.KeepAlive = new(durationText(s.KeepAlive))
	}
	if s.Pins != PinsBlock {
		e.Pins = s.Pins
	}
	if s.MaxMessageBytes != DefaultMaxMessageBytes {
		e.MaxMessageBytes = s.MaxMessageBytes
	}
	if t := s.Tools; len(t.Allow)+len(t.Deny)+len(t.Rename) > 0 {
		e.Tools = &toolsEntry{t.Allow, t.Deny, t.Rename}
	}
	return jsonc.Marshal(e)
}

// entryType leaves out a type that follows from the rest.
func (s Server) entryType() string {
	if s.Transport == TransportSSE {
		return string(s.Transport)
	}
	return ""
}

type entry struct {
	Type            string            `json:"type,omitempty"`
	Title           string            `json:"title,omitempty"`
	Command         string            `json:"command,omitempty"`
	Args            []string          `json:"args,omitempty"`
	Env             map[string]string `json:"env,omitempty"`
	Cwd             string            `json:"cwd,omitempty"`
	URL             string            `json:"url,omitempty"`
	Headers         map[string]string `json:"headers,omitempty"`
	HeadersFrom     string            `json:"headersFrom,omitempty"`
	OAuth           *oauthEntry       `json:"oauth,omitempty"`
	Disabled        bool              `json:"disabled,omitempty"`
	Lazy            *bool             `json:"lazy,omitempty"`
	KeepAlive       *durationText     `json:"keepAlive,omitempty"`
	Card            string            `json:"card,omitempty"`
	Supervision     map[string]any    `json:"supervision,omitempty"`
	Timeouts        map[string]any    `json:"timeouts,omitempty"`
	Pins            string            `json:"pins,omitempty"`
	Trust           bool              `json:"trust,omitempty"`
	MaxMessageBytes int64             `json:"maxMessageBytes,omitempty"`
	Singleton       bool              `json:"singleton,omitempty"`
	Tools           *toolsEntry       `json:"tools,omitempty"`
	Tags            []string          `json:"tags,omitempty"`
	Foreign         *foreignEntry     `json:"x-origin,omitempty"`
}

type toolsEntry struct {
	Allow  []string          `json:"allow,omitempty"`
	Deny   []string          `json:"deny,omitempty"`
	Rename map[string]string `json:"rename,omitempty"`
}

type foreignEntry struct {
	Client string         `json:"client,omitempty"`
	Keys   map[string]any `json:"keys,omitempty"`
}

type oauthEntry struct {
	ClientID                    string            `json:"clientId,omitempty"`
	ClientSecret                string            `json:"clientSecret,omitempty"`
	ClientMetadataURL           string            `json:"clientMetadataUrl,omitempty"`
	PrivateKey                  string            `json:"privateKey,omitempty"`
	Scopes                      []string          `json:"scopes,omitempty"`
	RedirectURI                 string            `json:"redirectUri,omitempty"`
	Issuer                      string            `json:"issuer,omitempty"`
	MetadataURL                 string            `json:"metadataUrl,omitempty"`
	AuthorizationEndpoint       string            `json:"authorizationEndpoint,omitempty"`
	TokenEndpoint               string            `json:"tokenEndpoint,omitempty"`
	DeviceAuthorizationEndpoint string            `json:"deviceAuthorizationEndpoint,omitempty"`
	Resource                    string            `json:"resource,omitempty"`
	Audience                    string            `json:"audience,omitempty"`
	AuthorizeParams             map[string]string `json:"authorizeParams,omitempty"`
	Grant                       string            `json:"grant,omitempty"`
	Assertion                   string            `json:"assertion,omitempty"`
	IDP                         *idpEntry         `json:"idp,omitempty"`
	DPoP                        bool              `json:"dpop,omitempty"`
	Discovery                   any               `json:"discovery,omitempty"`
}

type idpEntry struct {
	Issuer        string `json:"issuer,omitempty"`
	TokenEndpoint string `json:"tokenEndpoint,omitempty"`
	ClientID      string `json:"clientId,omitempty"`
	ClientSecret  string `json:"clientSecret,omitempty"`
	IDToken       string `json:"idToken,omitempty"`
}

func (o *OAuth) entry() *oauthEntry {
	if o == nil {
		return nil
	}
	e := &oauthEntry{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, ClientMetadataURL: o.ClientMetadataURL,
		PrivateKey: o.PrivateKey, Scopes: o.Scopes, RedirectURI: o.RedirectURI, Issuer: o.Issuer,
		MetadataURL: o.MetadataURL, AuthorizationEndpoint: o.AuthorizationEndpoint, TokenEndpoint: o.TokenEndpoint,
		DeviceAuthorizationEndpoint: o.DeviceAuthorizationEndpoint, Resource: o.Resource, Audience: o.Audience,
		AuthorizeParams: o.AuthorizeParams, Grant: o.Grant, Assertion: o.Assertion, DPoP: o.DPoP,
	}
	if o.IDP != nil {
		e.IDP = &idpEntry{o.IDP.Issuer, o.IDP.TokenEndpoint, o.IDP.ClientID, o.IDP.ClientSecret, o.IDP.IDToken}
	}
	mode := o.Discovery.Mode
	if mode == "" {
		mode = "auto"
	}
	switch {
	case len(o.Discovery.Allow) > 0:
		e.Discovery = map[string]any{"mode": mode, "allow": o.Discovery.Allow}
	case mode != "auto":
		e.Discovery = mode
	}
	return e
}

func (f *Foreign) entry() *foreignEntry {
	if f == nil {
		return nil
	}
	return &foreignEntry{Client: f.Client, Keys: f.Keys}
}

func (v Supervision) entry() map[string]any {
	out := map[string]any{}
	unlessDefault(out, "circuitThreshold", v.CircuitThreshold, DefaultCircuitThreshold)
	unlessDefault(out, "circuitReset", durationText(v.CircuitReset), durationText(DefaultCircuitReset))
	if v.MaxRestarts != 0 {
		unlessDefault(out, "maxRestarts", any(v.RestartLimit()), any(DefaultMaxRestarts))
	}
	unlessDefault(out, "restartWindow", durationText(v.RestartWindow), durationText(DefaultRestartWindow))
	unlessDefault(out, "ejectionReset", durationText(v.EjectionReset), durationText(0))
	unlessDefault(out, "retry", v.Retry, RetrySafe)
	return out
}

func (v Timeouts) entry() map[string]any {
	out := map[string]any{}
	unlessDefault(out, "connect", durationText(v.Connect), durationText(DefaultConnectTimeout))
	unlessDefault(out, "list", durationText(v.List), durationText(DefaultListTimeout))
	unlessDefault(out, "call", durationText(v.Call), durationText(DefaultCallTimeout))
	return out
}

func unlessDefault[T comparable](out map[string]any, key string, v, def T) {
	var zero T
	if v != def && v != zero {
		out[key] = v
	}
}

// durationText is written as Go writes durations.
type durationText time.Duration

// MarshalText writes "30s".
func (d durationText) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
