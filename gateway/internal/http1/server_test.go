package http1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// sleepy takes an hour where the agent wants that, and says when it was disturbed.
func sleepy(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/slow" {
		select {
		case <-time.After(time.Hour):
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	_, _ = io.WriteString(w, "done")
}

const slowRequest = "POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"

// Shutting down closes idle connections at once, those of net/http too, lets requests
// end and says to their agents that no other will be served.
func TestShutdown(t *testing.T) {
	bubble(t, sleepy, func(t *testing.T, l *pipes, s *Server) {
		idle, busy, theirs := l.agent(t), l.agent(t), l.agent(t)
		idle.send(plainRequest)
		idle.answer()
		theirs.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		theirs.answer()
		busy.send(slowRequest)
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(t.Context()) }()
		if got := idle.closedAfter(); got != 0 {
			t.Errorf("the idle one closed after %v", got)
		}
		_ = theirs.closedAfter()
		resp, body := busy.answer()
		if body != "done" || !resp.Close {
			t.Errorf("answered %q, closes: %v", body, resp.Close)
		}
		if got := busy.closedAfter(); got != 0 {
			t.Errorf("the busy one closed after %v", got)
		}
		if err := <-ended; err != nil {
			t.Errorf("shut down: %v", err)
		}
	})
}

// Whoever does not end in time is not waited for, and is cut off by closing.
func TestShutdownInTime(t *testing.T) {
	bubble(t, sleepy, func(t *testing.T, l *pipes, s *Server) {
		busy := l.agent(t)
		busy.send(slowRequest)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("shut down after %v: %v", time.Since(began), err)
		}
		_ = s.Close()
		if got := busy.closedAfter(); got != 0 {
			t.Errorf("closed after %v", got)
		}
	})
}

// Closing ends requests in flight.
func TestClose(t *testing.T) {
	bubble(t, sleepy, func(t *testing.T, l *pipes, s *Server) {
		busy, half := l.agent(t), l.agent(t)
		busy.send(slowRequest)
		half.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{}")
		synctest.Wait()
		_ = s.Close()
		for _, a := range []*agent{busy, half} {
			if got := a.closedAfter(); got != 0 {
				t.Errorf("closed after %v", got)
			}
		}
	})
}

// When nothing can be accepted for a while, net/http waits and tries again; when never
// again, serving ends.
func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newPipes(), New(quietServer(answers("ok")))
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(l) }()
		for range 5 {
			l.fails <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		}
		a := l.agent(t)
		a.send(plainRequest)
		if _, body := a.answer(); body != "ok" {
			t.Errorf("answered %q", body)
		}
		broken := errors.New("broken")
		l.fails <- broken
		if err := <-ended; !errors.Is(err, broken) {
			t.Errorf("ended with %v", err)
		}
		_ = s.Close()
	})
}

// eager is a connection whose agent is so quick that its next request is always there.
type eager struct {
	net.Conn
	left  int
	text  string
	after func()
}

func (c *eager) Read(p []byte) (int, error) {
	if c.left--; c.left < 0 {
		return 0, io.EOF
	}
	return copy(p, c.text), nil
}
func (c *eager) Write(p []byte) (int, error)      { return len(p), nil }
func (c *eager) Close() error                     { c.after(); return nil }
func (c *eager) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *eager) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *eager) SetReadDeadline(time.Time) error  { return nil }
func (c *eager) SetWriteDeadline(time.Time) error { return nil }

// An agent that asks again at once does not have the processor to itself: others that
// can go on have their turn after one request.
func TestTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var served, at atomic.Int32
	go1, closed := make(chan struct{}), make(chan struct{}, 2)
	s := New(quietServer(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-go1
			at.Store(served.Load())
			return
		}
		if served.Add(1) == 100 {
			close(go1)
		}
	}))
	after := func() { closed <- struct{}{} }
	l := newPipes()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	l.conns <- &eager{left: 1, text: slowRequest, after: after}
	for s.busy.Load() == 0 {
		runtime.Gosched()
	}
	l.conns <- &eager{left: 100_000, text: plainRequest, after: after}
	<-closed
	<-closed
	// A few more where Go has something else to do in between, and not the thousands that
	// fit into the time for which it lets a goroutine run.
	if got := at.Load(); got < 100 || got > 110 {
		t.Errorf("the other had its turn after %d requests instead of 100", got)
	}
	_ = s.Close()
	<-ended
}
