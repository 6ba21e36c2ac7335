package replicas

import (
	"io"
	"net"
	"sync"
	"testing"
)

// line is a way to the database that can be cut and mended.
type line struct {
	t        *testing.T
	to, addr string
	wg       sync.WaitGroup

	mu       sync.Mutex // guards what follows
	listener net.Listener
	conns    []net.Conn
}

func newLine(t *testing.T, to string) *line {
	l := &line{t: t, to: to, addr: "127.0.0.1:0"}
	l.mend()
	t.Cleanup(l.cut)
	return l
}

// mend listens, at the same address as before.
func (l *line) mend() {
	l.t.Helper()
	ln, err := net.Listen("tcp", l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	l.listener, l.addr = ln, ln.Addr().String()
	l.mu.Unlock()
	l.wg.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", l.to)
			if err != nil {
				_ = near.Close() // as a refused connection
				continue
			}
			l.mu.Lock()
			l.conns = append(l.conns, near, far)
			l.mu.Unlock()
			l.wg.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			l.wg.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
}

// cut ends all connections and refuses new ones, as a database that is stopped does.
func (l *line) cut() {
	l.mu.Lock()
	_ = l.listener.Close()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
	l.mu.Unlock()
	l.wg.Wait()
}
