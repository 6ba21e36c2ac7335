package http1

import (
	"context"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
)

// Server serves what an [http.Server] serves, with its handler and within its bounds.
type Server struct {
	http    *http.Server
	leaving atomic.Bool // no connection is kept any more
	procs   int32
	busy    atomic.Int32 // how many requests are in flight

	mu    sync.Mutex // guards what follows
	conns map[*conn]struct{}
	empty chan struct{} // closed when it is leaving and has no connection
}

// New returns a server that hands to h what it does not serve itself. It keeps to the
// handler, ConnContext, ReadHeaderTimeout, IdleTimeout, MaxHeaderBytes and ErrorLog of
// h, which must not be changed any more. h must not be told to serve, shut down or close by others.
func New(h *http.Server) *Server {
	return &Server{http: h, procs: int32(runtime.GOMAXPROCS(0)), conns: map[*conn]struct{}{}, empty: make(chan struct{})}
}

// Serve is [http.Server.Serve].
func (s *Server) Serve(l net.Listener) error {
	split := &listener{Listener: l, s: s, handed: make(chan net.Conn), failed: make(chan error), done: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(split.run)
	err := s.http.Serve(split)
	_ = split.Close() // net/http has done so already unless it never began
	wg.Wait()
	return err
}

// Shutdown is [http.Server.Shutdown].
func (s *Server) Shutdown(ctx context.Context) error {
	for _, c := range s.leave() {
		if c.state.CompareAndSwap(idle, closed) {
			_ = c.Close() // nothing is in flight
		}
	}
	err := s.http.Shutdown(ctx)
	select {
	case <-s.empty:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return err
}

// Close is [http.Server.Close].
func (s *Server) Close() error {
	for _, c := range s.leave() {
		c.cut()
	}
	return s.http.Close()
}

// leave takes no more connections and returns those there are.
func (s *Server) leave() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leaving.Swap(true) && len(s.conns) == 0 {
		close(s.empty)
	}
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// enter counts a connection in. It is false when there shall be no more.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving.Load() {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

// forget counts a connection out that has ended, or is net/http's now.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.leaving.Load() && len(s.conns) == 0 {
		close(s.empty)
	}
}

// listener is where net/http takes those connections from that it has to serve.
type listener struct {
	net.Listener
	s      *Server
	handed chan net.Conn
	failed chan error
	once   sync.Once
	done   chan struct{}
}

// run accepts until the listener is closed. What goes wrong is told to net/http, which
// knows what to do: it waits before it asks again, and so do we, as nobody listens.
func (l *listener) run() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			select {
			case l.failed <- err:
				continue
			case <-l.done:
				return
			}
		}
		if mine := newConn(l, c); l.s.enter(mine) {
			go mine.run() // ends with the connection
		} else {
			_ = c.Close() // it came too late
		}
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.handed:
		return c, nil
	case err := <-l.failed:
		return nil, err
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		close(l.done)
		err = l.Listener.Close()
	})
	return err
}

// give has net/http serve a connection of which early was read already.
func (l *listener) give(c net.Conn, early []byte) {
	select {
	case l.handed <- &handedConn{c, early}:
	case <-l.done:
		_ = c.Close() // nobody serves it any more
	}
}

// handedConn is read from its beginning, even if part of it was read before.
type handedConn struct {
	net.Conn
	early []byte
}

// NetConn is the connection as it was accepted.
func (c *handedConn) NetConn() net.Conn { return c.Conn }

func (c *handedConn) Read(p []byte) (int, error) {
	if len(c.early) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.early)
	if c.early = c.early[n:]; len(c.early) == 0 {
		c.early = nil
	}
	return n, nil
}
