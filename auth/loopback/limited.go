package loopback

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// limitedListener keeps a limited number of connections open. When another one comes,
// the oldest that has not sent a whole request yet is closed, so that slow or idle
// clients do not keep a browser waiting.
type limitedListener struct {
	net.Listener
	most int

	mu   sync.Mutex // guards open
	open []*limitedConn
}

func newLimitedListener(l net.Listener, most int) *limitedListener {
	return &limitedListener{Listener: l, most: most}
}

// Accept returns the next connection there is room for.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if lc, ok := l.admit(c); ok {
			return lc, nil
		}
		_ = c.Close() // every other one is being answered
	}
}

// admit makes room for a connection; false when all others are being answered.
func (l *limitedListener) admit(c net.Conn) (*limitedConn, bool) {
	lc := &limitedConn{Conn: c, l: l}
	l.mu.Lock()
	var out *limitedConn
	if len(l.open) >= l.most {
		i := slices.IndexFunc(l.open, func(c *limitedConn) bool { return !c.asked.Load() })
		if i < 0 {
			l.mu.Unlock()
			return nil, false
		}
		out = l.open[i]
		l.open = slices.Delete(l.open, i, i+1)
	}
	l.open = append(l.open, lc)
	l.mu.Unlock()
	if out != nil {
		_ = out.Conn.Close() // its server finds it closed
	}
	return lc, true
}

// limitedConn is one of the open connections.
type limitedConn struct {
	net.Conn
	l     *limitedListener
	asked atomic.Bool // it has sent a whole request
}

// Close closes the connection and gives its place back.
func (c *limitedConn) Close() error {
	c.l.mu.Lock()
	if i := slices.Index(c.l.open, c); i >= 0 {
		c.l.open = slices.Delete(c.l.open, i, i+1)
	}
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets the server say goodbye: the last page reaches a browser that is still
// sending.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// connKey is where the connection of a request stands in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// markAsked notes that the connection of a request has sent it.
func markAsked(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
		c.asked.Store(true)
	}
}
