package http1

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// What a connection is doing.
const (
	idle   = iota // it waits for a request
	active        // it has one, or a part of it
	closed
)

// firstRead is enough for most requests with their bodies.
const firstRead = 4 << 10

// conn is a connection that only had requests of ours.
type conn struct {
	net.Conn
	l     *listener
	s     *Server
	base  context.Context // of its requests
	blank *http.Request   // what is the same in all of them
	state atomic.Int32

	buf  []byte // buf[from:to] was read and not used yet
	from int
	to   int
	due  time.Time // the read deadline that is set

	first target // of the request before
	lines []line // of the request before
	date  stamp

	mu      sync.Mutex // guards what follows, see watch.go
	x       *exchange  // in flight, nil when there is none
	whole   bool       // its body is read
	timer   *time.Timer
	looking chan struct{} // closed when a look has ended; nil while there is none
	called  bool          // the look is called off
	gone    bool          // the agent has left
}

func newConn(l *listener, nc net.Conn) *conn {
	base := context.WithValue(context.Background(), http.ServerContextKey, l.s.http)
	base = context.WithValue(base, http.LocalAddrContextKey, nc.LocalAddr())
	if more := l.s.http.ConnContext; more != nil {
		base = more(base, nc)
	}
	return &conn{
		Conn: nc, l: l, s: l.s, base: base,
		blank: &http.Request{
			Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: nc.RemoteAddr().String(),
		},
	}
}

// run serves one request after the other.
func (c *conn) run() {
	defer c.s.forget(c)
	for {
		size, ok := c.await()
		if !ok {
			_ = c.Close() // the agent is gone, or took too long
			return
		}
		h, plain := c.read(c.buf[c.from : c.from+size])
		if !plain || size > c.maxHead() {
			c.handOver()
			return
		}
		c.from += size
		c.s.busy.Add(1)
		kept := c.serve(&h)
		others := c.s.busy.Add(-1)
		if !kept {
			_ = c.Close() // whatever was to be said is said
			return
		}
		if others >= c.s.procs {
			// An agent that asks again at once would have the processor to itself: with the
			// next request and its answer always there when they are read, nothing here
			// waits, and others stand in line for as long as Go lets a goroutine run.
			runtime.Gosched()
		}
	}
}

var endOfHead = []byte("\r\n\r\n")

// await reads a head and returns its size, 0 for one that is not served here. It is
// false where there will be none.
func (c *conn) await() (size int, ok bool) {
	if c.from == c.to {
		if c.from, c.to = 0, 0; len(c.buf) > firstRead {
			c.buf = nil
		}
		c.state.CompareAndSwap(active, idle) // one that was closed stays so
		if c.s.leaving.Load() || !c.waits() || c.fill() != nil {
			return 0, false
		}
	}
	if !c.state.CompareAndSwap(idle, active) && c.state.Load() == closed {
		return 0, false
	}
	if i := bytes.Index(c.buf[c.from:c.to], endOfHead); i >= 0 {
		return i + len(endOfHead), true
	}
	return c.awaitRest()
}

// awaitRest is await for a head that comes in parts.
func (c *conn) awaitRest() (size int, ok bool) {
	if limit := c.s.http.ReadHeaderTimeout; limit > 0 && !c.expires(time.Now().Add(limit)) {
		return 0, false
	}
	for c.to-c.from <= c.maxHead() {
		if err := c.fill(); err != nil {
			return 0, errors.Is(err, io.EOF) // net/http says that something is missing
		}
		if i := bytes.Index(c.buf[c.from:c.to], endOfHead); i >= 0 {
			return i + len(endOfHead), true
		}
	}
	return 0, true
}

func (c *conn) maxHead() int {
	if n := c.s.http.MaxHeaderBytes; n > 0 {
		return n
	}
	return http.DefaultMaxHeaderBytes
}

// waits sets the deadline of a connection without a request. Not each time again, that
// is not worth it: what is set lasts half as long again as it has to. The first request
// has to come at once, though.
func (c *conn) waits() bool {
	if limit := c.s.http.ReadHeaderTimeout; limit > 0 && c.first.text == "" {
		return c.expires(time.Now().Add(limit))
	}
	limit := c.s.http.IdleTimeout
	if limit <= 0 {
		return c.due.IsZero() || c.expires(time.Time{})
	}
	now := time.Now()
	if left := c.due.Sub(now); left >= limit && left <= limit*3/2 {
		return true
	}
	return c.expires(now.Add(limit * 3 / 2))
}

// expires sets the read deadline; the zero time is none.
func (c *conn) expires(at time.Time) bool {
	c.due = at
	return c.SetReadDeadline(at) == nil
}

// fill reads what there is, and makes room for it.
func (c *conn) fill() error {
	c.makeRoom()
	n, err := c.Read(c.buf[c.to:])
	c.to += n
	if n > 0 {
		return nil // an error will be there again
	}
	return err
}

func (c *conn) makeRoom() {
	if c.buf == nil {
		c.buf = make([]byte, firstRead)
	}
	if c.from > 0 {
		c.to = copy(c.buf, c.buf[c.from:c.to])
		c.from = 0
	}
	if c.to == len(c.buf) {
		c.buf = append(c.buf, make([]byte, len(c.buf))...)
	}
}

// handOver gives the connection to net/http.
func (c *conn) handOver() {
	if !c.due.IsZero() && !c.expires(time.Time{}) {
		_ = c.Close() // it is broken
		return
	}
	early := bytes.Clone(c.buf[c.from:c.to])
	if c.first.text != "" {
		// Some send an empty line behind a body. net/http lets that pass, where it has seen
		// the request before.
		early = early[lineEnds(early):]
	}
	c.l.give(c.Conn, early)
}

// lineEnds counts what an empty line or two are made of at the beginning of text.
func lineEnds(text []byte) int {
	n := 0
	for n < min(len(text), len(endOfHead)) && (text[n] == '\r' || text[n] == '\n') {
		n++
	}
	return n
}
