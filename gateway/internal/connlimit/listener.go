package connlimit

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// Listener is a listener that keeps the number of connections bounded without locking
// anybody out. Connections on which nobody has authenticated yet have a small budget
// of their own. When a budget is used up, an idle connection is closed in favour of
// the new one: the one that was idle longest, of the address or principal that has
// most. A client whose idle connection is closed connects again; HTTP clients do so
// by themselves.
//
// Behind a reverse proxy all connections have one address. Those that carried an
// authenticated request do not count against it.
type Listener struct {
	net.Listener
	max, maxNew int
	done        chan struct{}
	once        sync.Once
	changed     chan struct{} // one place: a connection was closed or authenticated

	mu    sync.Mutex // guards what follows
	fresh map[*conn]struct{}
	known map[*conn]struct{}
	of    map[string]int // fresh ones by address
	owned map[string]int // known ones by principal
}

// New limits the connections of l to most.
func New(l net.Listener, most int) *Listener {
	return &Listener{
		Listener: l, max: most, maxNew: min(max(most/4, 1), limit.NewConnections), done: make(chan struct{}), changed: make(chan struct{}, 1),
		fresh: map[*conn]struct{}{}, known: map[*conn]struct{}{}, of: map[string]int{}, owned: map[string]int{},
	}
}

// settles is how long a new connection may wait for its first bytes before it can be
// closed in favour of another, and slowRequest how long a request without
// authentication may take when there is no idle one.
const (
	settles     = 100 * time.Millisecond
	slowRequest = 2 * time.Second
	lookAgain   = 10 * time.Millisecond
)

// Accept implements [net.Listener].
func (t *Listener) Accept() (net.Conn, error) {
	nc, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, table: t, addr: addressOf(nc.RemoteAddr())}
	for !t.add(c) {
		victim := t.victim(time.Now())
		if victim != nil {
			_ = victim.Close() // there is nothing to tell its client
			continue
		}
		select {
		case <-t.changed:
		case <-time.After(lookAgain): // somebody has become idle
		case <-t.done:
			_ = nc.Close()
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// Close implements [net.Listener].
func (t *Listener) Close() error {
	t.once.Do(func() { close(t.done) })
	return t.Listener.Close()
}

// add counts a connection if there is room.
func (t *Listener) add(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.fresh) >= t.maxNew || len(t.fresh)+len(t.known) >= t.max {
		return false
	}
	t.fresh[c] = struct{}{}
	t.of[c.addr]++
	c.timer = time.AfterFunc(limit.NewConnectionIdle, c.check)
	return true
}

// victim returns the connection to close when there is no room. Nil: there is none.
func (t *Listener) victim(now time.Time) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := longest(t.fresh, t.of, func(c *conn) time.Duration { return c.unused(now) }, settles); c != nil {
		return c
	}
	if len(t.fresh) >= t.maxNew {
		return longest(t.fresh, t.of, func(c *conn) time.Duration { return c.working(now) }, slowRequest)
	}
	return longest(t.known, t.owned, func(c *conn) time.Duration { return c.unused(now) }, settles)
}

// longest finds the connection with the longest time of at least least, of the address
// or principal that has most. Those that have less than their share lose none.
func longest(all map[*conn]struct{}, count map[string]int, since func(*conn) time.Duration, least time.Duration) *conn {
	var found *conn
	most, long := 0, time.Duration(0)
	for c := range all {
		n := count[c.group()]
		if n*len(count) < len(all) {
			continue
		}
		if d := since(c); d >= least && (n > most || n == most && d > long) {
			found, most, long = c, n, d
		}
	}
	return found
}

// authenticated says that a request of principal was accepted on c.
func (t *Listener) authenticated(c *conn, principal string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.fresh[c]; !ok {
		return
	}
	t.leave(c)
	c.principal = principal
	c.known.Store(true)
	t.known[c] = struct{}{}
	t.owned[principal]++
}

// forget counts a closed connection out.
func (t *Listener) forget(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.fresh[c]; ok {
		t.leave(c)
		return
	}
	if _, ok := t.known[c]; ok {
		delete(t.known, c)
		if t.owned[c.principal]--; t.owned[c.principal] == 0 {
			delete(t.owned, c.principal)
		}
		t.poke()
	}
}

// leave takes c from the fresh ones; it needs mu.
func (t *Listener) leave(c *conn) {
	delete(t.fresh, c)
	if t.of[c.addr]--; t.of[c.addr] == 0 {
		delete(t.of, c.addr)
	}
	c.timer.Stop()
	t.poke()
}

func (t *Listener) poke() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// conn is a connection of a client.
type conn struct {
	net.Conn
	table *Listener
	addr  string
	timer *time.Timer // until it is authenticated; set by add

	principal string       // guarded by table.mu
	known     atomic.Bool  // somebody has authenticated on it
	idle      atomic.Int64 // since when it waits for a whole request, in Unix nanoseconds; 0: nobody reads it yet
	busy      atomic.Int64 // since when it has a request; 0: it has none
}

// group is what c is counted by; it needs table.mu.
func (c *conn) group() string {
	if c.known.Load() {
		return c.principal
	}
	return c.addr
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	if c.idle.Load() == 0 {
		c.idle.Store(time.Now().UnixNano())
	}
	return c.Conn.Read(p)
}

// begin says that c has a request, until end is called.
func (c *conn) begin() { c.busy.Store(time.Now().UnixNano()) }

func (c *conn) end() {
	c.idle.Store(time.Now().UnixNano())
	c.busy.Store(0)
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.table.forget(c)
	return err
}

// unused is how long c has been waiting for a whole request. Bytes that come slowly
// do not make it less.
func (c *conn) unused(now time.Time) time.Duration {
	since := c.idle.Load()
	if since == 0 || c.busy.Load() != 0 {
		return -1
	}
	return now.Sub(time.Unix(0, since))
}

// working is how long the request of c takes.
func (c *conn) working(now time.Time) time.Duration {
	since := c.busy.Load()
	if since == 0 {
		return -1
	}
	return now.Sub(time.Unix(0, since))
}

// check closes a connection on which nobody authenticates and that is idle for long.
func (c *conn) check() {
	if c.known.Load() {
		return
	}
	idle := c.unused(time.Now())
	if idle >= limit.NewConnectionIdle {
		_ = c.Close() // its client had time enough
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if _, ok := c.table.fresh[c]; ok {
		c.timer.Reset(limit.NewConnectionIdle - max(idle, 0))
	}
}

// connKey finds the connection of a request in its context.
type connKey struct{}

// ConnContext is for [http.Server.ConnContext].
func ConnContext(ctx context.Context, nc net.Conn) context.Context {
	for {
		if c, ok := nc.(*conn); ok {
			return context.WithValue(ctx, connKey{}, c)
		}
		inner, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return ctx
		}
		nc = inner.NetConn()
	}
}

// Authenticated notes that a request with this context was accepted as principal's.
func Authenticated(ctx context.Context, principal string) {
	if c := connOf(ctx); c != nil && !c.known.Load() {
		c.table.authenticated(c, principal)
	}
}

// connOf is the connection of a request, nil where it is not one of ours.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// TrackRequests tells the connection of a request that it has one.
func TrackRequests(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := connOf(r.Context()); c != nil {
			c.begin()
			defer c.end()
		}
		h.ServeHTTP(w, r)
	})
}

// addressOf is what connections are counted by: an IPv4 address or an IPv6 network,
// since one client has many addresses of one.
func addressOf(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return ""
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
