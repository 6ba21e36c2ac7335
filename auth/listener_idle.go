package auth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

const (
	// listenerLinger is how long the callback listener stays open after the last login
	// that can be answered there has ended: a browser may ask for its page again.
	listenerLinger = time.Minute
	// listenerLook is how often an open listener looks for such logins.
	listenerLook = 5 * time.Second
)

// closeListenerWhenIdle runs from when the callback listener opens until it closes.
func (e *Engine) closeListenerWhenIdle() {
	look := time.NewTicker(e.listener.look)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-e.life.Done():
			return
		}
		if e.closeIdleListener(e.life, time.Now()) {
			return
		}
	}
}

// closeIdleListener closes the callback listener if no login has been waiting for it
// for a while, and reports whether it did. The next login opens it again.
func (e *Engine) closeIdleListener(ctx context.Context, now time.Time) bool {
	l := &e.listener
	waits := e.anyWaitsAt(ctx, l.open())
	l.mu.Lock()
	if waits || l.holds > 0 {
		l.used = now
	}
	if l.closed || now.Sub(l.used) < l.linger {
		l.mu.Unlock()
		return false
	}
	servers := l.detach()
	l.mu.Unlock()
	shutDown(servers)
	return true
}

// anyWaitsAt reports whether a login of any process that shares the store may be
// answered on one of these ports. A store that cannot be read may hold one.
func (e *Engine) anyWaitsAt(ctx context.Context, ports map[string]bool) bool {
	recs, err := e.store.List(ctx, vault.KindPending, vault.Local)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return true
	}
	for _, rec := range recs {
		p, err := decodePending(rec)
		if err != nil || p.Flow != FlowCode || !time.Now().Before(p.Expires) {
			continue
		}
		if u, err := url.Parse(p.RedirectURI); err == nil && oauth.IsLoopback(u.Hostname()) && ports[oauth.PortOf(u)] {
			return true
		}
	}
	return false
}

// hold keeps the listener open while a login is being prepared, until release.
func (l *listener) hold() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.holds--
		l.used = time.Now()
	}
}

// open returns the ports that are listened on.
func (l *listener) open() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]bool{}
	for port := range l.ports {
		out[port] = true
	}
	return out
}

// detach frees the ports at once, so that the next login gets the same, and returns
// the servers, which may still be writing a page. It needs mu.
func (l *listener) detach() []*http.Server {
	for _, ln := range l.sockets {
		_ = ln.Close() // nothing is accepted any more
	}
	servers := l.servers
	l.main, l.ports, l.servers, l.sockets, l.watched = "", nil, nil, nil, false
	return servers
}

// shutDown lets pages that are being written reach the browser, then ends.
func shutDown(servers []*http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(func() {
			if s.Shutdown(ctx) != nil {
				_ = s.Close()
			}
		})
	}
	wg.Wait()
}

// watchLocked starts the goroutine that closes an idle listener. It needs mu.
func (l *listener) watchLocked(ln net.Listener) {
	l.sockets, l.used = append(l.sockets, ln), time.Now()
	if l.idle != nil && !l.watched {
		l.watched = l.spawn(l.idle)
	}
}
