package upstream

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
)

// Bounds of idle connections of the direct way, see [Transport].
const (
	maxIdlePerHost = 256
	maxIdle        = 1024
	idleTimeout    = 90 * time.Second
)

// Transport carries HTTP to upstream servers: kept-alive connections for concurrent
// calls, proxies from the environment, verified TLS, dead peers noticed.
//
// Short POSTs over plain HTTP/1.1 go the direct way: the caller itself writes the
// request and reads the answer, where net/http has two more goroutines for each
// connection and hands everything over twice. It saves a third of what a call costs.
// Everything else (TLS and with it HTTP/2, proxies, long bodies, unusual headers)
// goes through net/http, whose reader of responses serves both ways.
type Transport struct {
	base *http.Transport

	mu    sync.Mutex // guards what follows
	idle  map[string][]*directConn
	count int         // in idle
	sweep *time.Timer // nil while nothing is idle
}

// NewTransport returns a transport fit for many upstream servers.
func NewTransport() *Transport {
	d := &net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3},
	}
	return &Transport{idle: map[string][]*directConn{}, base: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           d.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          512,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       idleTimeout,

		MaxResponseHeaderBytes: limit.ServerHeaderBytes,
		DisableCompression:     true, // answers are bounded by their size on the wire
	}}
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if proxy, err := t.base.Proxy(req); err != nil || proxy != nil || !plain(req) {
		return t.base.RoundTrip(req)
	}
	buf := directBuffers.Get().(*[]byte)
	defer directBuffers.Put(buf)
	head, ok := appendHead((*buf)[:0], req)
	if !ok {
		return t.base.RoundTrip(req)
	}
	*buf = head
	return t.roundTrip(req, buf)
}

// CloseIdleConnections closes the connections that nobody uses.
func (t *Transport) CloseIdleConnections() {
	t.base.CloseIdleConnections()
	t.mu.Lock()
	idle := t.idle
	t.idle, t.count = map[string][]*directConn{}, 0
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
	t.mu.Unlock()
	for _, conns := range idle {
		for _, c := range conns {
			_ = c.Close() // nobody waits for it
		}
	}
}

// conn returns an idle connection that the peer has left open, or a new one.
func (t *Transport) conn(ctx context.Context, host string) (*directConn, error) {
	for {
		c := t.pop(host)
		if c == nil {
			return t.dial(ctx, host)
		}
		if c.alive() {
			return c, nil
		}
		_ = c.Close() // the peer has closed it, or said something nobody asked for
	}
}

// pop takes the idle connection that was used last.
func (t *Transport) pop(host string) *directConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	conns := t.idle[host]
	if len(conns) == 0 {
		return nil
	}
	last := len(conns) - 1
	c := conns[last]
	conns[last] = nil
	t.idle[host] = conns[:last]
	t.count--
	return c
}

// put keeps a connection for the next request.
func (t *Transport) put(c *directConn) {
	t.mu.Lock()
	conns := t.idle[c.host]
	keep := len(conns) < maxIdlePerHost && t.count < maxIdle
	if keep {
		c.since = time.Now()
		t.idle[c.host] = append(conns, c)
		t.count++
		if t.sweep == nil {
			t.sweep = time.AfterFunc(idleTimeout/3, t.sweepIdle)
		}
	}
	t.mu.Unlock()
	if !keep {
		_ = c.Close() // nobody waits for it
	}
}

// sweepIdle closes connections that have been idle for too long, or whose peer has
// left.
func (t *Transport) sweepIdle() {
	var gone []*directConn
	t.mu.Lock()
	if t.sweep == nil {
		t.mu.Unlock()
		return // closed meanwhile
	}
	for host, conns := range t.idle {
		kept := conns[:0]
		for _, c := range conns {
			if time.Since(c.since) < idleTimeout && c.alive() {
				kept = append(kept, c)
			} else {
				gone = append(gone, c)
			}
		}
		clear(conns[len(kept):])
		if t.idle[host] = kept; len(kept) == 0 {
			delete(t.idle, host)
		}
	}
	if t.count -= len(gone); t.count > 0 {
		t.sweep.Reset(idleTimeout / 3)
	} else {
		t.sweep = nil
	}
	t.mu.Unlock()
	for _, c := range gone {
		_ = c.Close() // nobody waits for it
	}
}
