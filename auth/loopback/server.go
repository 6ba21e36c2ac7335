package loopback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/internal/limit"
)

// Bounds of a client of the listener.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 10 * time.Second
	writeTimeout    = 2 * time.Minute // the code is exchanged before the page is written
	maxHeaderBytes  = 16 << 10
	shutdownTimeout = 2 * time.Second
	// peerTimeout is how long another usher may take to say that it is one: on a busy
	// machine a second is little.
	peerTimeout = 3 * time.Second
)

const (
	// Path is that of redirect addresses that usher chooses.
	Path = "/callback"
	// identityPath tells another usher whose listener this is.
	identityPath   = "/.well-known/usher-callback"
	identityHeader = "Usher-Callback"
)

// Identity is what all processes that share a store know about their listeners.
type Identity struct {
	// Port is tried first, for providers that compare redirect addresses to the
	// letter.
	Port int `json:"port"`
	// ID tells listeners that share a store from others.
	ID string `json:"id"`
}

// ErrClosed: the listener was closed for good.
var ErrClosed = errors.New("the callback listener is closed")

// Server takes the answers of consent pages on loopback addresses: one for all
// logins of the process, told apart by their state, and one more for each port that
// a configured redirect address demands.
type Server struct {
	Receive http.HandlerFunc  // answers a request at a redirect address
	Spawn   func(func()) bool // runs a server; false when it is too late for that
	OnOpen  func()            // runs while it is open and calls CloseIfIdle; nil: it stays open
	Linger  time.Duration     // how long it stays open after the last login

	mu      sync.Mutex // guards everything below
	main    string     // base address of the shared one; "" while it is closed
	ports   map[string]map[string]bool
	servers []*http.Server
	sockets []net.Listener
	used    time.Time // when a login last needed it
	holds   int       // logins that are being prepared
	watched bool      // OnOpen runs
	closed  bool
}

// FreePort names a port that nobody uses right now, and that is likely to be free
// later too: systems give higher ones to outgoing connections.
func FreePort() int {
	for try := range 20 {
		port := 20000 + mathrand.IntN(12000)
		if try == 19 {
			port = 0 // any
		}
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			defer func() { _ = l.Close() }()
			return l.Addr().(*net.TCPAddr).Port
		}
	}
	return 0
}

// Start opens the shared listener, on the remembered port if it is free.
func (l *Server) Start(m Identity) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.main != "" {
		return l.main + Path, nil
	}
	if l.closed {
		return "", ErrClosed
	}
	first, host, err := openLoopback(m.Port)
	if err != nil {
		return "", err
	}
	port := strconv.Itoa(first.Addr().(*net.TCPAddr).Port)
	l.serve(first, port, Path, m.ID)
	if host == "127.0.0.1" {
		// For providers that take http://localhost only: browsers may try this first.
		if second, err := net.Listen("tcp6", net.JoinHostPort("::1", port)); err == nil {
			l.serve(second, port, Path, m.ID)
		}
	}
	l.main = "http://" + net.JoinHostPort(host, port)
	return l.main + Path, nil
}

// Address is the redirect address of the shared listener; "" while it is closed.
func (l *Server) Address() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.main == "" {
		return ""
	}
	return l.main + Path
}

// openLoopback listens on a loopback address: the wanted port, else any.
func openLoopback(port int) (net.Listener, string, error) {
	var first error
	for _, try := range []struct {
		network, host string
		port          int
	}{{"tcp4", "127.0.0.1", port}, {"tcp4", "127.0.0.1", 0}, {"tcp6", "::1", port}, {"tcp6", "::1", 0}} {
		l, err := net.Listen(try.network, net.JoinHostPort(try.host, strconv.Itoa(try.port)))
		if err == nil {
			return l, try.host, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, "", first
}

// ListenOn makes sure that a configured redirect address is answered: by this
// process, or by another one that shares the store and holds the port already.
func (l *Server) ListenOn(u *url.URL, id string) error {
	if u.Scheme != "http" || !oauth.IsLoopback(u.Hostname()) {
		return nil // not ours to answer: pasted, or served by a gateway
	}
	port, path := oauth.PortOf(u), u.Path
	if path == "" {
		path = "/"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if paths, ok := l.ports[port]; ok {
		paths[path] = true
		return nil
	}
	hosts := []string{u.Hostname()}
	if u.Hostname() == "localhost" {
		hosts = []string{"127.0.0.1", "::1"}
	}
	opened := 0
	var first error
	for _, host := range hosts {
		ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err == nil {
			opened++
			l.serve(ln, port, path, id)
		} else if first == nil {
			first = err
		}
	}
	if opened > 0 || heldByPeer(hosts[0], port, id) {
		return nil
	}
	return fmt.Errorf("listen on port %s of oauth.redirectUri: %w; stop %s, or use paste-back", port, first, cmp.Or(holderOf(port), "the program that uses it"))
}

// heldByPeer reports whether the port is held by a process with the same store,
// which then finishes our login too.
func heldByPeer(host, port, id string) bool {
	if id == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), peerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+identityPath, nil)
	if err != nil {
		return false
	}
	t := &http.Transport{DisableKeepAlives: true}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.Header.Get(identityHeader) == id
}

// serve answers on ln; it needs mu.
func (l *Server) serve(ln net.Listener, port, path, id string) {
	if l.ports == nil {
		l.ports = map[string]map[string]bool{}
	}
	if l.ports[port] == nil {
		l.ports[port] = map[string]bool{}
	}
	l.ports[port][path] = true
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		markAsked(r)
		switch {
		case !ownHost(r.Host, port):
			writePage(w, http.StatusMisdirectedRequest, Unknown)
		case r.URL.Path == identityPath:
			w.Header().Set(identityHeader, id)
			w.WriteHeader(http.StatusNoContent)
		case !l.answers(port, r.URL.Path):
			writePage(w, http.StatusNotFound, Unknown)
		default:
			l.Receive(w, r)
		}
	})
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: headerTimeout, MaxHeaderBytes: maxHeaderBytes, ConnContext: withConn, ErrorLog: log.New(io.Discard, "", 0),
	}
	srv.SetKeepAlivesEnabled(false)
	l.servers = append(l.servers, srv)
	ln = newLimitedListener(ln, limit.CallbackConnections)
	if !l.Spawn(func() { _ = srv.Serve(ln) }) { // ends with http.ErrServerClosed
		_ = ln.Close()
		return
	}
	l.watchLocked(ln)
}

func (l *Server) answers(port, path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ports[port][path]
}

// ownHost reports whether a request was meant for this listener, and not for a
// stranger's name that resolves here.
func ownHost(hostport, port string) bool {
	host, p, err := net.SplitHostPort(hostport)
	if err != nil {
		host, p = hostport, "80"
	}
	return p == port && oauth.IsLoopback(host)
}

// Close ends it for good.
func (l *Server) Close() {
	l.mu.Lock()
	l.closed = true
	servers := l.detach()
	l.mu.Unlock()
	shutDown(servers)
}
