package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// maxLine is the longest line the fake reads.
const maxLine = 256 << 20

// ServeStdio serves one client on a pair of pipes, until in ends, ctx ends or a
// misbehaviour ends it (then ErrExited). It closes in and out where they can be
// closed, and returns when nothing of it runs any more.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := s.join(ctx)
	defer stop()
	sess := s.open(ctx, "stdio", true)
	defer s.drop(sess)
	pipe := &pipe{s: s, sess: sess, w: out}
	sess.setPush(pipe)
	s.note(sess, Entry{Event: EventStart})
	// Reading cannot be interrupted but by closing.
	unhook := context.AfterFunc(sess.ctx, func() { closeAll(in, out) })
	defer closeAll(in, out)
	defer unhook()
	if !s.startStdio(sess, pipe) {
		return ErrExited
	}
	var wg sync.WaitGroup
	err := s.readLoop(sess, pipe, in, &wg)
	s.note(sess, Entry{Event: EventEnd})
	if v, deaf := s.sw.get("neverexit"); deaf {
		pause(sess.ctx, time.Duration(v.number(600))*time.Second)
	}
	sess.cancel(errStopped)
	wg.Wait()
	if errors.Is(context.Cause(sess.ctx), ErrExited) {
		return ErrExited
	}
	return err
}

// join returns a context that also ends when the server closes.
func (s *Server) join(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(s.ctx, cancel)
	entered := s.enter()
	return ctx, func() {
		unhook()
		cancel()
		if entered {
			s.wg.Done()
		}
	}
}

func closeAll(ends ...any) {
	for _, e := range ends {
		if c, ok := e.(io.Closer); ok {
			// Closed twice or by the other side: either way it is closed.
			_ = c.Close()
		}
	}
}

func (s *Server) startStdio(sess *session, p *pipe) bool {
	if _, ok := s.sw.get("exit-on-start"); ok {
		fmt.Fprintln(s.opts.Stderr, "fake: cannot start: no configuration")
		s.exit(sess, "exit-on-start")
		return false
	}
	if v, ok := s.sw.get("stderrflood"); ok {
		s.flood(v)
	}
	if v, ok := s.sw.get("garbage"); ok {
		for i := range v.number(3) {
			_ = p.send(garbage(i), false)
		}
	}
	return true
}

func (s *Server) readLoop(sess *session, out *pipe, in io.Reader, wg *sync.WaitGroup) error {
	lines := wire.NewLines(in, maxLine)
	for {
		line, err := lines.Next()
		switch {
		case sess.ctx.Err() != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
			return nil
		case err != nil:
			return fmt.Errorf("read stdin: %w", err)
		}
		msg, bad := s.parse(sess, line)
		switch {
		case bad != nil:
			_ = out.send(newFrame(mcp.AppendError(nil, mcp.ID{}, bad.JSON())), true)
		case msg.Kind() != mcp.KindRequest:
			s.receive(sess, msg, nil)
		default:
			ex := s.admit(sess, &pipeAnswer{pipe: out, method: msg.Method}, msg, nil)
			wg.Go(func() { s.serve(sess.ctx, ex) })
			if _, ok := s.sw.fire("deaf", msg.Method); ok {
				<-sess.ctx.Done()
			}
		}
	}
}

// pipe writes messages as lines.
type pipe struct {
	s    *Server
	sess *session
	mu   sync.Mutex // one line at a time
	w    io.Writer
}

func (p *pipe) send(f frame, _ bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.s.sw.get("crlf"); ok {
		f.tail = append(f.tail[:len(f.tail):len(f.tail)], '\r')
	}
	return writeLine(p.w, f)
}

func (p *pipe) end() {}

// pipeAnswer is a pipe that misbehaves at the answer to one request.
type pipeAnswer struct {
	*pipe
	method string
}

func (p *pipeAnswer) send(f frame, final bool) error {
	if !final {
		return p.pipe.send(f, false)
	}
	if v, ok := p.s.sw.fire("slowbyte", p.method); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		return writeLine(slowWriter{w: p.w, pause: time.Duration(v.number(200)) * time.Millisecond, stop: p.sess.ctx.Done(), flush: func() {}}, f)
	}
	if v, ok := p.s.sw.fire("halfclose", p.method); ok {
		var err error
		if v != "headers" {
			p.mu.Lock()
			err = f.half().writeTo(p.w)
			p.mu.Unlock()
		}
		p.s.exit(p.sess, "halfclose")
		return err
	}
	return p.pipe.send(f, final)
}

func writeLine(w io.Writer, f frame) error {
	f.tail = append(f.tail[:len(f.tail):len(f.tail)], '\n')
	if f.pad == 0 {
		f.head, f.tail = append(f.head[:len(f.head):len(f.head)], f.tail...), nil
	}
	return f.writeTo(w)
}
