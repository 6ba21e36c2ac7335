package loopback

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Hold keeps the listener open while a login is being prepared, until release.
func (l *Server) Hold() (release func()) {
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

// CloseIfIdle closes the listener if no login has needed it for a while, and reports
// whether it did. Needed says that a login needs it now.
func (l *Server) CloseIfIdle(needed bool, now time.Time) bool {
	l.mu.Lock()
	if needed || l.holds > 0 {
		l.used = now
	}
	if l.closed || now.Sub(l.used) < l.Linger {
		l.mu.Unlock()
		return false
	}
	servers := l.detach()
	l.mu.Unlock()
	shutDown(servers)
	return true
}

// Ports returns the ports that are listened on.
func (l *Server) Ports() map[string]bool {
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
func (l *Server) detach() []*http.Server {
	for _, ln := range l.sockets {
		_ = ln.Close() // nothing is accepted any more
	}
	servers := l.servers
	l.main, l.ports, l.servers, l.sockets, l.watched = "", nil, nil, nil, false
	return servers
}

// shutDown lets pages that are being written reach the browser, then ends.
func shutDown(servers []*http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
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
func (l *Server) watchLocked(ln net.Listener) {
	l.sockets, l.used = append(l.sockets, ln), time.Now()
	if l.OnOpen != nil && !l.watched {
		l.watched = l.Spawn(l.OnOpen)
	}
}
