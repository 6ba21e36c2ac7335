package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/suggest"
	"github.com/usher-mcp/usher/internal/visible"
)

// Settings are the host-wide options, under "usher" in a file. After Load all
// of them have values.
type Settings struct {
	// Store is a path, or a postgres:// URL. Empty means the embedded store
	// in the state directory.
	Store string
	// Key says where the master key comes from: auto, keychain, passphrase,
	// file:PATH or env:NAME. Default auto.
	Key string
	// MaxConnected bounds stdio children alive at once. Default 10.
	MaxConnected int
	Budgets      Budgets
	Policy       Policy
	Bulk         Bulk
	Gateway      Gateway
	Audit        Audit
	Telemetry    Telemetry
	// Problem is non-nil when rules or budgets of a trusted file, or of the
	// environment, could not be read, or a whole file. Rules may be missing then,
	// so the code that enforces them has to refuse rather than use defaults.
	Problem error
	// Mistakes are the other settings that could not be used and have their
	// defaults. They are in [Config].Warnings too.
	Mistakes []Mistake

	unread error // a trusted file, or all of its settings, that could not be read
}

// Budget bounds calls. Zero means no bound.
type Budget struct {
	Run    int64         // calls in the life of one process
	Calls  int64         // calls in each window
	Window time.Duration // default one hour
}

// Budgets holds the budget of everything, the one each server has by default,
// and those of servers that differ.
type Budgets struct {
	Total     Budget
	PerServer Budget
	Servers   map[string]Budget
	Session   int64 // calls in each session of a client of the gateway; 0: no limit
}

// Rule is one pattern "server" or "server/tool", with globs, and where it
// stands.
type Rule struct {
	Pattern string
	Origin  Origin
}

// Policy says what may be used. Deny wins; an empty Allow allows all.
type Policy struct {
	Allow []Rule
	Deny  []Rule
}

// Bulk bounds logging in to many servers at once. Defaults 8 and 30s.
type Bulk struct {
	Concurrency    int
	PrepareTimeout time.Duration
}

// Gateway holds the settings of usher serve.
type Gateway struct {
	HTTP               string // address to listen on; empty means stdio only
	PublicURL          string // how agents and browsers reach it from outside
	PeerURL            string // where other replicas behind the same public URL reach this one
	Surface            string // auto (default), meta or direct
	TokenBudget        int    // 10000: what a list of tools may cost under auto
	Separator          string // "__", between server and tool in direct names
	AllowedHosts       []string
	AllowedOrigins     []string
	MaxBodyBytes       int64         // 16 MiB
	MaxConcurrentCalls int           // 64 per principal
	SessionIdle        time.Duration // 30m
	DrainTimeout       time.Duration // 10s
	// DiscoveryHosts are globs over the hosts that may be asked for OAuth metadata and
	// tokens, beside those that the definition of a server names. Empty: all.
	DiscoveryHosts []string
	Auth           GatewayAuth
	Profiles       map[string]Profile
}

// GatewayAuth says how clients authenticate.
type GatewayAuth struct {
	Mode     string // none (default, loopback only), token or oidc
	Issuer   string
	Audience string
	Scopes   []string
}

// Profile is a named selection of servers, of tools ("server/tool" globs), and of the
// servers that have one of the tags.
type Profile struct {
	Servers []string
	Tools   []string
	Tags    []string
}

// Audit says whether calls are written to the audit log, and how long they stay
// there; Keep 0 means permanently. Defaults true and 2160h (90 days).
type Audit struct {
	Enabled bool
	Keep    time.Duration
}

// Telemetry says where traces and metrics are sent, where metrics can be fetched, and
// what is logged. Nothing is sent until Endpoint or one of the usual variables is set.
type Telemetry struct {
	Endpoint    string            // of an OTLP collector, over HTTP
	Headers     map[string]string // for the collector
	SampleRatio float64           // default 1
	// Listen is an address that serves /metrics, /healthz and /readyz without
	// authentication. Empty: the gateway serves them at its own address, and
	// /metrics requires the gateway's authentication.
	Listen    string
	LogLevel  string // debug, info (default), warn or error
	LogFormat string // text (default) or json
}

// Defaults of settings, also used by the packages that they steer.
const (
	DefaultMaxConnected    = 10
	DefaultBulkConcurrency = 8
	DefaultPrepareTimeout  = 30 * time.Second
)

// DefaultSettings are the built-in values.
func DefaultSettings() Settings {
	return Settings{
		Key:          "auto",
		MaxConnected: DefaultMaxConnected,
		Budgets:      Budgets{Total: Budget{Window: time.Hour}, PerServer: Budget{Window: time.Hour}},
		Bulk:         Bulk{Concurrency: DefaultBulkConcurrency, PrepareTimeout: DefaultPrepareTimeout},
		Gateway: Gateway{
			Surface: "auto", TokenBudget: 10000, Separator: "__",
			MaxBodyBytes: limit.RequestBytes, MaxConcurrentCalls: limit.Calls,
			SessionIdle: limit.SessionIdle, DrainTimeout: 10 * time.Second,
			Auth: GatewayAuth{Mode: "none"},
		},
		Audit: Audit{Enabled: true, Keep: 90 * 24 * time.Hour},
		Telemetry: Telemetry{
			SampleRatio: 1, LogLevel: "info", LogFormat: "text",
		},
	}
}

// setting ties a path in the file to a field. Files, the environment and
// flags all go through this list.
type setting struct {
	path  string
	value any // *string, *int, *int64, *bool, *float64, *time.Duration or *[]string
	check func() error
}

func (s *Settings) list() []setting {
	g, t, b := &s.Gateway, &s.Telemetry, &s.Budgets
	return []setting{
		{"store", &s.Store, nil},
		{"key", &s.Key, func() error { return checkKey(s.Key) }},
		{"maxConnected", &s.MaxConnected, atLeast(&s.MaxConnected, 1)},
		{"budgets.run", &b.Total.Run, atLeast(&b.Total.Run, 0)},
		{"budgets.calls", &b.Total.Calls, atLeast(&b.Total.Calls, 0)},
		{"budgets.window", &b.Total.Window, atLeast(&b.Total.Window, time.Second)},
		{"budgets.session", &b.Session, atLeast(&b.Session, 0)},
		{"budgets.perServer.run", &b.PerServer.Run, atLeast(&b.PerServer.Run, 0)},
		{"budgets.perServer.calls", &b.PerServer.Calls, atLeast(&b.PerServer.Calls, 0)},
		{"budgets.perServer.window", &b.PerServer.Window, atLeast(&b.PerServer.Window, time.Second)},
		{"bulk.concurrency", &s.Bulk.Concurrency, atLeast(&s.Bulk.Concurrency, 1)},
		{"bulk.prepareTimeout", &s.Bulk.PrepareTimeout, aboveZero(&s.Bulk.PrepareTimeout)},
		{"gateway.http", &g.HTTP, nil},
		{"gateway.publicUrl", &g.PublicURL, func() error { return checkOptionalURL(g.PublicURL) }},
		{"gateway.peerUrl", &g.PeerURL, func() error { return checkOptionalURL(g.PeerURL) }},
		{"gateway.surface", &g.Surface, among(&g.Surface, "auto", "meta", "direct")},
		{"gateway.tokenBudget", &g.TokenBudget, atLeast(&g.TokenBudget, 1)},
		{"gateway.separator", &g.Separator, func() error { return checkSeparator(g.Separator) }},
		{"gateway.allowedHosts", &g.AllowedHosts, nil},
		{"gateway.allowedOrigins", &g.AllowedOrigins, nil},
		{"gateway.maxBodyBytes", &g.MaxBodyBytes, atLeast(&g.MaxBodyBytes, 1024)},
		{"gateway.maxConcurrentCalls", &g.MaxConcurrentCalls, atLeast(&g.MaxConcurrentCalls, 1)},
		{"gateway.sessionIdle", &g.SessionIdle, atLeast(&g.SessionIdle, time.Second)},
		{"gateway.drainTimeout", &g.DrainTimeout, atLeast(&g.DrainTimeout, 0)},
		{"gateway.discoveryHosts", &g.DiscoveryHosts, func() error { return checkHosts(g.DiscoveryHosts) }},
		{"gateway.auth.mode", &g.Auth.Mode, among(&g.Auth.Mode, "none", "token", "oidc")},
		{"gateway.auth.issuer", &g.Auth.Issuer, func() error { return checkOptionalURL(g.Auth.Issuer) }},
		{"gateway.auth.audience", &g.Auth.Audience, nil},
		{"gateway.auth.scopes", &g.Auth.Scopes, nil},
		{"audit.enabled", &s.Audit.Enabled, nil},
		{"audit.keep", &s.Audit.Keep, atLeast(&s.Audit.Keep, 0)},
		{"telemetry.endpoint", &t.Endpoint, func() error { return checkOptionalURL(t.Endpoint) }},
		{"telemetry.listen", &t.Listen, nil},
		{"telemetry.sampleRatio", &t.SampleRatio, ratio(&t.SampleRatio)},
		{"telemetry.logLevel", &t.LogLevel, among(&t.LogLevel, "debug", "info", "warn", "error")},
		{"telemetry.logFormat", &t.LogFormat, among(&t.LogFormat, "text", "json")},
	}
}

// Variable returns the name of the environment variable that overrides the
// setting at a path: bulk.prepareTimeout is USHER_BULK_PREPARE_TIMEOUT.
func Variable(path string) string {
	var b strings.Builder
	b.WriteString("USHER_")
	for _, r := range path {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r):
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
	}
	return b.String()
}

// SettingPaths lists what environment variables and flags may override.
func SettingPaths() []string {
	var s Settings
	var out []string
	for _, st := range s.list() {
		out = append(out, st.path)
	}
	out = append(out, "policy.allow", "policy.deny")
	slices.Sort(out)
	return out
}

// Resolve fills in the placeholders of the settings, as Server.Resolve does
// for a server; dir is where relative paths start from.
func (s Settings) Resolve(ctx context.Context, r Lookup, dir string) (Settings, error) {
	r.Command = nil // settings are read before anything could be approved
	rs := resolver{Lookup: r, ctx: ctx, base: dir}
	for _, st := range s.list() {
		p, ok := st.value.(*string)
		if !ok {
			continue
		}
		v, err := rs.expand("usher."+st.path, *p)
		if err != nil {
			return Settings{}, err
		}
		*p = v
	}
	s.Telemetry.Headers = maps.Clone(s.Telemetry.Headers)
	for k, v := range s.Telemetry.Headers {
		v, err := rs.expand("usher.telemetry.headers."+k, v)
		if err != nil {
			return Settings{}, err
		}
		s.Telemetry.Headers[k] = v
	}
	return s, nil
}

// unused are the settings that the others leave without effect.
func (s *Settings) unused() []string {
	auth := s.Gateway.Auth
	if auth.Mode == "oidc" {
		return nil
	}
	var out []string
	for path, set := range map[string]bool{
		"gateway.auth.issuer": auth.Issuer != "", "gateway.auth.audience": auth.Audience != "", "gateway.auth.scopes": len(auth.Scopes) > 0,
	} {
		if set {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

func atLeast[T int | int64 | time.Duration](p *T, low T) func() error {
	return func() error {
		if *p < low {
			return &lowError{floor: fmt.Sprint(low), raise: func() { *p = low }}
		}
		return nil
	}
}

func among(p *string, values ...string) func() error {
	return func() error {
		if !slices.Contains(values, *p) {
			return fmt.Errorf("must be one of %s, not %s%s", strings.Join(values, ", "), visible.Quote(*p), suggest.DidYouMean(*p, values))
		}
		return nil
	}
}

func ratio(p *float64) func() error {
	return func() error {
		if !(*p >= 0 && *p <= 1) {
			return errors.New("must be between 0 and 1")
		}
		return nil
	}
}

func checkKey(key string) error {
	kind, rest, found := strings.Cut(key, ":")
	switch {
	case !found && slices.Contains([]string{"auto", "keychain", "passphrase"}, kind):
		return nil
	case rest != "" && (kind == "file" || kind == "env"):
		return nil
	}
	return errors.New("must be auto, keychain, passphrase, file:PATH or env:NAME")
}

func checkHosts(hosts []string) error {
	for _, host := range hosts {
		if err := checkGlob(host); err != nil {
			return err
		}
		if strings.ContainsAny(host, "/:") {
			return fmt.Errorf("must hold host names, without scheme and port, not %s", visible.Quote(host))
		}
	}
	return nil
}

func checkOptionalURL(raw string) error {
	if raw == "" {
		return nil
	}
	return checkURLTemplate(raw)
}

// checkSeparator keeps direct names within what the protocol and clients
// allow in a tool name.
func checkSeparator(sep string) error {
	if sep == "" || len(sep) > 4 || strings.Trim(sep, "_-.") != "" {
		return errors.New("must be one to four characters of \"_-.\"")
	}
	return nil
}
