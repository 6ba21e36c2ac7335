package fake

import (
	"context"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// before applies what happens to a request before it is handled. It reports false
// when the request gets no answer.
func (s *Server) before(ctx context.Context, ex *exchange) bool {
	method := ex.msg.Method
	if s.sw.hit(s, ex, "silent") || (method == mcp.MethodDiscover && s.sw.hit(s, ex, "silent-probe")) {
		<-ctx.Done()
		return false
	}
	if method == mcp.MethodDiscover && s.sw.hit(s, ex, "exit-on-probe") {
		s.exit(ex.sess, "exit-on-probe")
		return false
	}
	if v, ok := s.sw.fire("crash-loop", method); ok && s.countRequest(ex.sess) > v.number(0) {
		s.exit(ex.sess, "crash-loop")
		return false
	}
	if v, ok := s.sw.fire("stderrflood", method); ok && ex.sess.transport == "stdio" {
		s.flood(v)
	}
	if v, ok := s.sw.fire("endless-progress", method); ok {
		s.progressForever(ctx, ex, time.Duration(v.number(10))*time.Millisecond)
		return false
	}
	if v, ok := s.sw.fire("latency", method); ok {
		return pause(ctx, time.Duration(v.number(100))*time.Millisecond)
	}
	return true
}

func (s *Server) progressForever(ctx context.Context, ex *exchange, gap time.Duration) {
	token, ok := jsonx.Get(ex.p.Meta, mcp.MetaProgress)
	if !ok {
		token = []byte(`"none"`)
	}
	for i := 1; pause(ctx, gap); i++ {
		_ = ex.out.send(progressFrame(token, i, i+1, ""), false)
	}
}

// hit is fire with an entry in the ledger.
func (ss *switchSet) hit(s *Server, ex *exchange, name string) bool {
	_, ok := ss.fire(name, ex.msg.Method)
	if ok {
		s.note(ex.sess, Entry{Event: EventFault, Name: name, Method: ex.msg.Method, ID: ex.msg.ID.JSON()})
	}
	return ok
}

// countRequest counts what one process was asked: over stdio a connection is a
// process, over HTTP the whole server is.
func (s *Server) countRequest(sess *session) int {
	if sess.transport == "stdio" {
		sess.mu.Lock()
		defer sess.mu.Unlock()
		sess.served++
		return sess.served
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return s.requests
}

func (s *Server) flood(v value) {
	line := make([]byte, 1024)
	for i := range line {
		line[i] = 'e'
	}
	line[len(line)-1] = '\n'
	for range v.number(1024) {
		if _, err := s.opts.Stderr.Write(line); err != nil {
			return
		}
	}
}

// pause waits, and reports false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
