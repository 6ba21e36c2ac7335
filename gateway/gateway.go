package gateway

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/guard"
	"github.com/usher-mcp/usher/gateway/internal/headers"
	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/gateway/internal/suspend"
)

// Gateway serves views to agents. All methods may be used concurrently.
type Gateway struct {
	opt       Options
	views     Endpoints
	guard     guard.Guard
	seal      *sealer
	limits    limits
	sessions  sessionStore
	suspended suspend.Store
	held      stream.ByteQuota // for clients that do not read or are away
	bodies    stream.ByteQuota // of requests
	headers   headers.Tables
	finished  completions
	count     counters
	// credentials end what was opened with them; watching: a goroutine hears of
	// revocations.
	credentials lifetime.Registry
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
	g.guard = guard.New(append(authn.HostsOf(g.opt.Auth), g.opt.Hosts...), g.opt.Origins)
	g.limits.init(g.opt.MaxCalls, g.opt.MaxStreams)
	g.sessions.init(g.opt.MaxSessions, g.opt.SessionIdle)
	g.initHeld()
	g.suspended.Init(g.opt.MaxSuspended, g.opt.SuspendTime)
	return g
}

// Drain makes the gateway end: it is not ready any more, streams that only wait for
// changes end in order, and new requests are still answered. Close cancels the rest.
func (g *Gateway) Drain() {
	g.drain.Do(func() { close(g.draining) })
}

// Close ends sessions, streams and suspended calls, and returns when they are gone.
// Plain requests of the stateless protocol end with their connection, which is the
// server's to close; see [Gateway.Serve].
func (g *Gateway) Close() {
	g.Drain()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.end()
	g.sessions.closeAll()
	g.suspended.CloseAll()
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
	stateless, legacy, refused, limited, suspended, resumed, forwarded atomic.Int64
}

// Stats counts what the gateway did and holds.
type Stats struct {
	Stateless, Legacy  int64 // requests of each protocol
	Refused            int64 // by guard or authentication
	Limited            int64 // answered 429
	Suspended, Resumed int64 // calls that waited for an agent
	Forwarded          int64 // requests that were handed on to another gateway
	Sessions           int   // open now
	Waiting            int   // suspended now
}

// Stats returns the counts so far.
func (g *Gateway) Stats() Stats {
	return Stats{
		Stateless: g.count.stateless.Load(), Legacy: g.count.legacy.Load(), Refused: g.count.refused.Load(), Limited: g.count.limited.Load(),
		Suspended: g.count.suspended.Load(), Resumed: g.count.resumed.Load(), Forwarded: g.count.forwarded.Load(), Sessions: g.sessions.len(), Waiting: g.suspended.Len(),
	}
}
