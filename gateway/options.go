package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/surface"
)

// Endpoints are the views that a gateway serves; *surface.Surface is one.
type Endpoints interface {
	Auto() (surface.View, surface.Explanation)
	Meta() surface.View
	Direct() surface.View
	Server(ctx context.Context, a surface.Agent, name string) (surface.View, error)
	Profile(name string) (surface.View, error)
	Explain(err error) surface.Problem
	// BeginLogin starts a login that a request at a view needs; it waits for nobody.
	BeginLogin(ctx context.Context, v surface.View, a surface.Agent, target string) (surface.Login, error)
	// LoginPending reports whether a login at target waits for the person.
	LoginPending(ctx context.Context, v surface.View, a surface.Agent, target string) bool
}

// Defaults of Options.
const (
	DefaultMaxBody      = limit.RequestBytes
	DefaultMaxCalls     = limit.Calls
	DefaultMaxStreams   = limit.Streams
	DefaultMaxSessions  = limit.Sessions
	DefaultSessionIdle  = limit.SessionIdle
	DefaultMaxSuspended = limit.SuspendedCalls
	DefaultSuspendTime  = limit.SuspendedTime
	DefaultKeepAlive    = 15 * time.Second
	DefaultGrace        = 10 * time.Second
	DefaultMaxConns     = limit.Connections
)

// Options steer a Gateway. The zero value serves everybody on this machine.
type Options struct {
	// Auth says who sent a request. Nil: everybody is the local user, which only
	// loopback addresses are good enough for, see [CheckListen].
	Auth authn.Authenticator
	// Hosts are names that requests may be addressed to, "name" or "name:port",
	// beside those of this machine and the one that OAuth knows.
	Hosts []string
	// Origins are web pages that may send requests, "https://app.example.com",
	// beside pages of the gateway itself. Default none.
	Origins []string
	// Key seals the states that suspended calls are resumed with: 32 bytes. Processes
	// behind one URL share it. Default: random, for the life of the Gateway.
	Key []byte
	// Peer is the address at which other gateways behind the same URL reach this one,
	// "http://10.0.0.5:7331". They must share Key. Empty: there are no others.
	Peer string
	// MaxBody bounds a request. Default 16 MiB.
	MaxBody int64
	// MaxCalls bounds the requests of a principal that are in flight at once.
	// Default 256. The next one gets 429.
	MaxCalls int
	// MaxStreams bounds the streams a principal holds open. Default 256.
	MaxStreams int
	// MaxSessions bounds the sessions of the legacy protocol, of all principals; one
	// principal may have a quarter of them. Default 4096.
	MaxSessions int
	// SessionIdle ends a session that nobody used for so long. Default 30m.
	SessionIdle time.Duration
	// MaxSuspended bounds the calls that wait for an agent's answer, and SuspendTime how
	// long. Default 1000 and 10m; one principal may have a tenth of them.
	MaxSuspended int
	SuspendTime  time.Duration
	// KeepAlive is how often a silent stream gets a sign of life, and how long an
	// answer may take before it becomes a stream. Default 15s.
	KeepAlive time.Duration
	// Grace is how long requests in flight may go on after [Gateway.Serve] was
	// told to end. Default 10s.
	Grace time.Duration
	// MaxConns bounds the connections that Serve keeps at once, a quarter of them
	// before anybody has authenticated. Default 4096.
	MaxConns int
	// Log hears warnings. Default: discard.
	Log *slog.Logger
	// Tracer makes a span of every request. Nil: none.
	Tracer trace.Tracer
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	out.MaxBody = cmp.Or(max(out.MaxBody, 0), DefaultMaxBody)
	out.MaxCalls = cmp.Or(max(out.MaxCalls, 0), DefaultMaxCalls)
	out.MaxStreams = cmp.Or(max(out.MaxStreams, 0), DefaultMaxStreams)
	out.MaxSessions = cmp.Or(max(out.MaxSessions, 0), DefaultMaxSessions)
	out.SessionIdle = cmp.Or(max(out.SessionIdle, 0), DefaultSessionIdle)
	out.MaxSuspended = cmp.Or(max(out.MaxSuspended, 0), DefaultMaxSuspended)
	out.SuspendTime = cmp.Or(max(out.SuspendTime, 0), DefaultSuspendTime)
	out.KeepAlive = cmp.Or(max(out.KeepAlive, 0), DefaultKeepAlive)
	out.Grace = cmp.Or(max(out.Grace, 0), DefaultGrace)
	out.MaxConns = cmp.Or(max(out.MaxConns, 0), DefaultMaxConns)
	if out.Log == nil {
		out.Log = slog.New(slog.DiscardHandler)
	}
	return out
}
