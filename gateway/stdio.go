package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface"
)

// ServeStdio serves one view over a pair of pipes, of both protocols, until in ends or
// ctx does; then what is in flight is cancelled: the client closed the pipe.
// Requests run side by side. The error is nil when in ended in order.
func (g *Gateway) ServeStdio(ctx context.Context, view surface.View, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &stdioConn{
		g: g, end: &endpoint{key: "stdio", view: view}, ctx: ctx, cancel: cancel, Queue: stream.NewQueue(nil, ""),
		who: authn.Identity{Principal: authn.LocalPrincipal}, calls: map[mcp.ID]context.CancelCauseFunc{},
	}
	written := make(chan struct{})
	go func() { // ends when all is written, or with out
		defer close(written)
		p.write(out)
	}()
	defer context.AfterFunc(g.life, func() { cancel(errEnded) })()
	read := make(chan error, 1)
	lines := wire.NewLines(in, g.opt.MaxBody)
	go func() { read <- p.read(lines) }() // ends with in, which may outlive us
	var err error
	select {
	case err = <-read:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-g.draining:
	}
	p.close()
	select {
	case <-written:
	case <-time.After(stream.WriteTimeout): // an agent that does not read must not keep us
	}
	return err
}

// pipe is a conversation over stdio.
type stdioConn struct {
	g             *Gateway
	end           *endpoint
	who           authn.Identity
	counted       policy.Session // the calls of the agent, whatever protocol it speaks
	ctx           context.Context
	cancel        context.CancelCauseFunc
	wg            sync.WaitGroup
	*stream.Queue // what waits to be written

	mu      sync.Mutex                         // guards what follows
	calls   map[mcp.ID]context.CancelCauseFunc // of the stateless protocol
	session *session
	closed  bool
}

// read takes messages until there are no more.
func (p *stdioConn) read(lines *wire.Lines) error {
	for {
		line, err := lines.Next()
		var tooLong *wire.TooLongError
		switch {
		case errors.As(err, &tooLong):
			id, kind := mcp.Peek(tooLong.Prefix)
			if kind == mcp.KindRequest {
				p.answer(appendError(nil, id, mcp.Errorf(mcp.CodeInvalidRequest, "the message is larger than %d bytes", tooLong.Limit)))
			}
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read from the agent: %w", err)
		}
		p.line(line)
	}
}

func (p *stdioConn) line(line []byte) {
	m, err := mcp.Parse(line)
	if errors.Is(err, mcp.ErrBatch) {
		p.batch(line)
		return
	}
	if err != nil {
		bad, id := envelopeError(err)
		p.answer(appendError(nil, id, bad))
		return
	}
	p.message(&m)
}

// batch takes a batch apart, which one revision has. The answers need not come
// together.
func (p *stdioConn) batch(line []byte) {
	messages, err := splitBatch(line)
	s := p.legacy()
	if err == nil && (s == nil || s.agent.Version != mcp.V20250326) {
		err = mcp.ErrBatch
	}
	if err != nil {
		bad, id := envelopeError(err)
		p.answer(appendError(nil, id, bad))
		return
	}
	for i := range messages {
		p.message(&messages[i])
	}
}

func (p *stdioConn) message(m *mcp.Message) {
	switch {
	case m.Kind() == mcp.KindRequest && saysVersion(m):
		p.stateless(m)
	case m.Kind() == mcp.KindRequest:
		p.legacyRequest(m)
	case m.Method == mcp.MethodNotifyCancel && p.cancelled(m):
	default:
		if s := p.legacy(); s != nil {
			s.take(m)
		}
	}
}

func (p *stdioConn) legacy() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// run does f for a request, if there is room.
func (p *stdioConn) run(id mcp.ID, f func() response) {
	u := p.g.limits.call(p.who.Principal)
	if u == nil {
		p.g.count.limited.Add(1)
		p.answer(appendError(nil, id, mcp.Errorf(mcp.CodeInternal, "too many requests at once; try again in a second")))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		u.calls.Add(-1)
		return
	}
	p.wg.Go(func() {
		defer u.calls.Add(-1)
		if a := f(); !a.none {
			p.answer(a.append(nil, id))
		}
	})
}

// modern serves a request that says its version.
func (p *stdioConn) stateless(m *mcp.Message) {
	p.g.count.stateless.Add(1)
	q := &request{end: p.end, id: m.ID, Request: mcp.Request{Method: m.Method, Params: m.Params}, agent: agentOf(p.who), out: p}
	q.agent.Session = &p.counted
	if bad := q.read(nil); bad != nil {
		p.answer(appendError(nil, m.ID, bad))
		return
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	p.mu.Lock()
	taken := p.calls[m.ID] != nil
	if !taken {
		p.calls[m.ID] = cancel
	}
	p.mu.Unlock()
	if taken {
		cancel(nil)
		p.answer(appendError(nil, m.ID, mcp.Errorf(mcp.CodeInvalidRequest, "the id %.60s is in use", m.ID.JSON())))
		return
	}
	p.run(m.ID, func() response {
		defer cancel(nil)
		a := p.g.serveStateless(ctx, q)
		p.mu.Lock()
		delete(p.calls, m.ID)
		p.mu.Unlock()
		if ctx.Err() != nil {
			return response{none: true}
		}
		return a
	})
}

func (p *stdioConn) cancelled(m *mcp.Message) bool {
	id, ok := mcp.RawID(member(m.Params, "requestId"))
	p.mu.Lock()
	cancel := p.calls[id]
	p.mu.Unlock()
	if !ok || cancel == nil {
		return false
	}
	cancel(errCancelled)
	return true
}

// older serves a request without a version: the handshake, or what comes after it.
func (p *stdioConn) legacyRequest(m *mcp.Message) {
	p.g.count.legacy.Add(1)
	s := p.legacy()
	switch {
	case m.Method == mcp.MethodInitialize && s == nil:
		p.initialize(m)
	case s != nil:
		p.run(m.ID, func() response { return s.serve(m, p, lifetime.Lifetime{}) })
	case m.Method == mcp.MethodPing:
		p.answer(mcp.AppendResult(nil, m.ID, nil))
	case m.Method == mcp.MethodDiscover:
		p.answer(appendError(nil, m.ID, mcp.Errorf(mcp.CodeInvalidParams, "_meta lacks %s", mcp.MetaVersion)))
	default:
		p.answer(appendError(nil, m.ID, mcp.Errorf(mcp.CodeInvalidRequest, "send initialize first, or say the protocol version in _meta")))
	}
}

// initialize begins the session. It is in place before the answer is, so nothing
// that follows can come too early.
func (p *stdioConn) initialize(m *mcp.Message) {
	s := p.g.newSession(p.who, p.end, p, m.Params)
	s.agent.Session = &p.counted
	p.mu.Lock()
	p.session = s
	p.mu.Unlock()
	p.run(m.ID, func() response { return s.initialize(p.ctx) })
}

// answer sends what must not be lost.
func (p *stdioConn) answer(message []byte) { p.Put(message, true) }

// write carries what waits to the agent, until there is no more to come.
func (p *stdioConn) write(out io.Writer) {
	var buf []byte
	for {
		frames, open := p.Queue.Take()
		if len(frames) == 0 {
			if !open {
				return
			}
			<-p.Wake
			continue
		}
		buf = buf[:0]
		for _, f := range frames {
			buf = wire.AppendLine(buf, f)
		}
		if _, err := out.Write(buf); err != nil {
			p.Queue.Close()
			p.cancel(fmt.Errorf("write to the agent: %w", err))
			return
		}
		if cap(buf) > stream.MaxPooled {
			buf = nil
		}
	}
}

// close cancels what is in flight and waits for its end.
func (p *stdioConn) close() {
	p.mu.Lock()
	p.closed = true
	s := p.session
	p.mu.Unlock()
	p.cancel(errEnded)
	if s != nil {
		s.close(errEnded)
	}
	p.wg.Wait()
	p.Queue.Close()
}
