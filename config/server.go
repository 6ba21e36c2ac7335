package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Transport is how a server is reached.
type Transport string

// The transports. Other spellings found in files ("streamable-http", "local")
// are folded into these when they are read.
const (
	TransportStdio Transport = "stdio"
	TransportHTTP  Transport = "http"
	TransportSSE   Transport = "sse"
)

// Layer says which kind of file a definition came from, and so whether it is
// trusted. The empty layer belongs to servers made by a program.
type Layer string

// The layers, in the order in which later ones win. LayerFlag is the file
// named with --config, which replaces the other two.
const (
	LayerUser    Layer = "user"
	LayerProject Layer = "project"
	LayerFlag    Layer = "flag"
)

// Retry says when a call may be repeated after the transport failed.
type Retry string

// RetrySafe repeats only what cannot have run or is declared idempotent by a
// trusted server; it is the default.
const (
	RetrySafe   Retry = "safe"
	RetryAlways Retry = "always"
	RetryNever  Retry = "never"
)

// What to do when a tool differs from its pin.
const (
	PinsBlock = "block"
	PinsWarn  = "warn"
	PinsOff   = "off"
)

// Defaults of the per-server options.
const (
	DefaultKeepAlive        = 5 * time.Minute
	DefaultCircuitThreshold = 5
	DefaultCircuitReset     = 30 * time.Second
	DefaultMaxRestarts      = 5
	DefaultRestartWindow    = 5 * time.Minute
	DefaultConnectTimeout   = 30 * time.Second
	DefaultListTimeout      = 30 * time.Second
	DefaultCallTimeout      = 60 * time.Second
	DefaultMaxMessageBytes  = 16 << 20
)

// Server is one validated entry. Its strings still hold placeholders until
// Resolve. A Server is a value: methods never change the receiver.
type Server struct {
	Name  string
	Title string // the original name when it was normalised on import

	Transport Transport

	Command string
	Args    []string
	Env     map[string]string
	Cwd     string // relative to BaseDir; made absolute by Resolve

	URL     string
	Headers map[string]string
	// HeadersFrom is a template that yields more headers when resolved, as a
	// JSON object or as "Name: value" lines. Headers wins over it.
	HeadersFrom string

	Lazy      *bool         // nil means false; Load fills in true
	KeepAlive time.Duration // 0 closes an unused lazy connection at once
	Card      string        // path or URL of a server card

	Supervision     Supervision
	Timeouts        Timeouts
	Pins            string // PinsBlock, PinsWarn or PinsOff
	Trust           bool   // believe the server's annotations
	MaxMessageBytes int64
	Singleton       bool

	Disabled bool
	Tools    ToolRules
	Tags     []string
	OAuth    *OAuth

	// Foreign keeps what another client's file said and this format has no
	// place for ("x-origin" in the file), so that an export can restore it.
	Foreign *Foreign

	Origin Origin
	// Problem is non-nil when this entry is broken: it must not be used, and
	// the other servers are unaffected.
	Problem error
}

// Supervision bounds restarts and drives the circuit breaker.
type Supervision struct {
	CircuitThreshold int
	CircuitReset     time.Duration
	// MaxRestarts is how many restarts within RestartWindow a server may have; one more
	// ejects it. 0 is the default, [NoRestarts] is none; see RestartLimit.
	MaxRestarts   int
	RestartWindow time.Duration
	// EjectionReset is how long an ejection lasts. 0: 10 restart windows.
	EjectionReset time.Duration
	Retry         Retry
}

// NoRestarts is the MaxRestarts of a server that the first restart ejects. A file says
// 0, which in a definition made by a program is unset.
const NoRestarts = -1

// RestartLimit is how many restarts a server may have.
func (v Supervision) RestartLimit() int { return max(v.MaxRestarts, 0) }

// EjectionTime is how long an ejection lasts.
func (v Supervision) EjectionTime() time.Duration {
	if v.EjectionReset > 0 {
		return v.EjectionReset
	}
	return defaultEjectionWindows * v.RestartWindow
}

// defaultEjectionWindows is how many restart windows an ejection lasts.
const defaultEjectionWindows = 10

// Timeouts bounds each kind of request.
type Timeouts struct {
	Connect time.Duration
	List    time.Duration
	Call    time.Duration
}

// ToolRules narrows and renames the tools of one server. Allow and Deny are
// globs over tool names; Deny wins; an empty Allow allows all.
type ToolRules struct {
	Allow  []string
	Deny   []string
	Rename map[string]string
}

// Foreign is what an imported entry said that has no place in Server.
type Foreign struct {
	Client string         // name of the client it came from
	Keys   map[string]any // as decoded from that client's file
}

// Origin is where a definition stands.
type Origin struct {
	File   string
	Line   int
	Column int
	Layer  Layer
	// Shadows is the place (file:line) of a definition of the same name in an
	// earlier layer that this one replaced, or empty.
	Shadows string
}

// OAuth holds what is configured about logging in to a server. All of it is
// optional; what is missing is discovered.
type OAuth struct {
	ClientID                    string
	ClientSecret                string
	ClientMetadataURL           string
	PrivateKey                  string
	Scopes                      []string
	RedirectURI                 string
	Issuer                      string
	MetadataURL                 string
	AuthorizationEndpoint       string
	TokenEndpoint               string
	DeviceAuthorizationEndpoint string
	Resource                    string // "exact", "omit" or a URI; empty lets the login decide
	Audience                    string
	AuthorizeParams             map[string]string
	Grant                       string // empty picks by what is possible
	Assertion                   string
	IDP                         *IDP
	DPoP                        bool
	Discovery                   Discovery
}

// Discovers reports whether a login to the server fetches metadata from hosts that
// nothing in its definition names: oauth.discovery is on and has no allow list.
func (s Server) Discovers() bool {
	if s.Transport == TransportStdio || s.HeadersFrom != "" {
		return false
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	return s.OAuth == nil || s.OAuth.Discovery.Mode != "off" && len(s.OAuth.Discovery.Allow) == 0
}

// IDP is the identity provider of an enterprise-managed login.
type IDP struct {
	Issuer        string
	TokenEndpoint string
	ClientID      string
	ClientSecret  string
	IDToken       string
}

// Discovery says whether metadata is fetched ("auto", the default, or "off")
// and which hosts may be asked although their address is private.
type Discovery struct {
	Mode  string
	Allow []string
}

// The grants that oauth.grant may name.
const (
	GrantAuthorizationCode = "authorization_code"
	GrantDeviceCode        = "device_code"
	GrantClientCredentials = "client_credentials"
	GrantJWTBearer         = "jwt_bearer"
	GrantEnterprise        = "enterprise"
)

// WithDefaults returns a copy in which every option that is unset has its
// default, as Load does. KeepAlive is left alone, since 0 means something.
func (s Server) WithDefaults() Server {
	s = s.clone()
	orDefault(&s.Supervision.CircuitThreshold, DefaultCircuitThreshold)
	orDefault(&s.Supervision.CircuitReset, DefaultCircuitReset)
	orDefault(&s.Supervision.MaxRestarts, DefaultMaxRestarts)
	orDefault(&s.Supervision.RestartWindow, DefaultRestartWindow)
	orDefault(&s.Supervision.Retry, RetrySafe)
	orDefault(&s.Timeouts.Connect, DefaultConnectTimeout)
	orDefault(&s.Timeouts.List, DefaultListTimeout)
	orDefault(&s.Timeouts.Call, DefaultCallTimeout)
	orDefault(&s.Pins, PinsBlock)
	orDefault(&s.MaxMessageBytes, DefaultMaxMessageBytes)
	if s.Transport == "" {
		s.Transport = TransportStdio
		if s.URL != "" {
			s.Transport = TransportHTTP
		}
	}
	return s
}

func orDefault[T comparable](p *T, def T) {
	var zero T
	if *p == zero {
		*p = def
	}
}

// fileDefaults is the entry that a server read from a file starts as.
func fileDefaults(name string) Server {
	lazy := true
	s := Server{Name: name, Lazy: &lazy, KeepAlive: DefaultKeepAlive}.WithDefaults()
	s.Transport = "" // decided when the entry is checked
	return s
}

// IsLazy reports whether the server connects on its first call only.
func (s Server) IsLazy() bool { return s.Lazy != nil && *s.Lazy }

// clone returns a copy that shares no memory with s.
func (s Server) clone() Server {
	s.Args = slices.Clone(s.Args)
	s.Env = maps.Clone(s.Env)
	s.Headers = maps.Clone(s.Headers)
	s.Tools.Allow = slices.Clone(s.Tools.Allow)
	s.Tools.Deny = slices.Clone(s.Tools.Deny)
	s.Tools.Rename = maps.Clone(s.Tools.Rename)
	s.Tags = slices.Clone(s.Tags)
	if s.Lazy != nil {
		lazy := *s.Lazy
		s.Lazy = &lazy
	}
	if s.OAuth != nil {
		o := *s.OAuth
		o.Scopes = slices.Clone(o.Scopes)
		o.AuthorizeParams = maps.Clone(o.AuthorizeParams)
		o.Discovery.Allow = slices.Clone(o.Discovery.Allow)
		if o.IDP != nil {
			idp := *o.IDP
			o.IDP = &idp
		}
		s.OAuth = &o
	}
	if s.Foreign != nil {
		f := *s.Foreign
		f.Keys = maps.Clone(f.Keys)
		s.Foreign = &f
	}
	return s
}
