package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
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
	DefaultMaxBody     = limit.RequestBytes
	DefaultMaxCalls    = limit.Calls
	DefaultMaxStreams  = limit.Streams
	DefaultMaxSessions = limit.Sessions
	DefaultSessionIdle = limit.SessionIdle
	DefaultMaxParked   = limit.SuspendedCalls
	DefaultParkTime    = limit.SuspendedTime
	DefaultKeepAlive   = 15 * time.Second
	DefaultGrace       = 10 * time.Second
	DefaultMaxConns    = limit.Connections
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
	// Key seals the states that parked calls are resumed with: 32 bytes. Processes
	// behind one URL share it. Default: random, for the life of the Gateway.
	Key []byte
	// Peer is the address at which other gateways behind the same URL reach this one,
	// "http://10.0.0.5:7331". They must share Key. Empty: there are no others.
	Peer string
	// MaxBody bounds a request. Default 16 MiB.
	MaxBody int64
	// MaxCalls bounds the requests of a principal that are under way at once.
	// Default 256. The next one gets 429.
	MaxCalls int
	// MaxStreams bounds the streams a principal holds open. Default 256.
	MaxStreams int
	// MaxSessions bounds the sessions of the older era, of all principals; one
	// principal may have a quarter of them. Default 4096.
	MaxSessions int
	// SessionIdle ends a session that nobody used for so long. Default 30m.
	SessionIdle time.Duration
	// MaxParked bounds the calls that wait for an agent's answer, and ParkTime how
	// long. Default 1000 and 10m; one principal may have a tenth of them.
	MaxParked int
	ParkTime  time.Duration
	// KeepAlive is how often a silent stream gets a sign of life, and how long an
	// answer may take before it becomes a stream. Default 15s.
	KeepAlive time.Duration
	// Grace is how long requests under way may go on after [Gateway.Serve] was
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
	out.MaxParked = cmp.Or(max(out.MaxParked, 0), DefaultMaxParked)
	out.ParkTime = cmp.Or(max(out.ParkTime, 0), DefaultParkTime)
	out.KeepAlive = cmp.Or(max(out.KeepAlive, 0), DefaultKeepAlive)
	out.Grace = cmp.Or(max(out.Grace, 0), DefaultGrace)
	out.MaxConns = cmp.Or(max(out.MaxConns, 0), DefaultMaxConns)
	if out.Log == nil {
		out.Log = slog.New(slog.DiscardHandler)
	}
	return out
}

// Gateway serves views to agents. All methods may be used concurrently.
type Gateway struct {
	opt      Options
	views    Endpoints
	guard    guard
	seal     *sealer
	limits   limits
	sessions sessions
	parked   parking
	held     heldBytes // for clients that do not read or are away
	bodies   heldBytes // of requests
	headers  headerTables
	finished completions
	count    counters
	// credentials end what was opened with them; watching: a goroutine hears of
	// revocations.
	credentials credentials
	watching    atomic.Bool
	peers       *http.Transport

	life     context.Context // ends with Close: whatever still runs is cancelled
	end      context.CancelFunc
	draining chan struct{} // closed by Drain: streams end in order
	drain    sync.Once

	mu     sync.Mutex // guards closed, and wg against being waited for too early
	closed bool
	wg     sync.WaitGroup
}

// New returns a gateway to views. Close it. It panics when Options.Key is set and
// not 32 bytes long.
func New(views Endpoints, opt *Options) *Gateway {
	g := &Gateway{opt: opt.withDefaults(), views: views, draining: make(chan struct{}), peers: newPeers()}
	if g.opt.Key == nil {
		g.opt.Key = make([]byte, sealKeyLen)
		_, _ = rand.Read(g.opt.Key) // never fails
	}
	g.life, g.end = context.WithCancel(context.Background())
	g.seal = newSealer(g.opt.Key)
	g.guard = newGuard(append(authn.HostsOf(g.opt.Auth), g.opt.Hosts...), g.opt.Origins)
	g.limits.init(g.opt.MaxCalls, g.opt.MaxStreams)
	g.sessions.init(g.opt.MaxSessions, g.opt.SessionIdle)
	g.initHeld()
	g.parked.init(g.opt.MaxParked, g.opt.ParkTime)
	return g
}

// Drain makes the gateway end: it is not ready any more, streams that only wait for
// changes end in order, and new requests are still answered. Close cancels the rest.
func (g *Gateway) Drain() {
	g.drain.Do(func() { close(g.draining) })
}

// Close ends sessions, streams and parked calls, and returns when they are gone.
// Plain requests of the modern era end with their connection, which is the
// server's to close; see [Gateway.Serve].
func (g *Gateway) Close() {
	g.Drain()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.end()
	g.sessions.closeAll()
	g.parked.closeAll()
	g.wg.Wait()
	g.peers.CloseIdleConnections()
}

// spawn runs f, which Close waits for. False: it is too late.
func (g *Gateway) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(f)
	return true
}

// enterWork counts what Close waits for until wg.Done. False: it is too late.
func (g *Gateway) enterWork() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Add(1)
	return true
}

// Ready reports whether the gateway takes requests and is not about to end.
func (g *Gateway) Ready() bool {
	select {
	case <-g.draining:
		return false
	default:
		return true
	}
}

// counters of what the gateway did.
type counters struct {
	modern, legacy, refused, limited, parked, resumed, forwarded atomic.Int64
}

// Stats counts what the gateway did and holds.
type Stats struct {
	Modern, Legacy  int64 // requests of each era
	Refused         int64 // by guard or authentication
	Limited         int64 // answered 429
	Parked, Resumed int64 // calls that waited for an agent
	Forwarded       int64 // requests that were handed on to another gateway
	Sessions        int   // open now
	Waiting         int   // parked now
}

// Stats returns the counts so far.
func (g *Gateway) Stats() Stats {
	return Stats{
		Modern: g.count.modern.Load(), Legacy: g.count.legacy.Load(), Refused: g.count.refused.Load(), Limited: g.count.limited.Load(),
		Parked: g.count.parked.Load(), Resumed: g.count.resumed.Load(), Forwarded: g.count.forwarded.Load(), Sessions: g.sessions.len(), Waiting: g.parked.len(),
	}
}
