package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/process"
)

// stdioLink speaks with a child over its standard streams.
type stdioLink struct {
	c     *Conn
	child *process.Child
	queue chan *job
	gone  chan struct{} // closed when the reader has ended
}

// job is one line to be written. Whoever gets claimed first decides its fate: the
// writer writes it, or the caller has left before that.
type job struct {
	body    []byte
	claimed atomic.Bool
	done    chan error
}

// errNotSent says that a line never left, so that a repeat is safe.
var errNotSent = errors.New("the request was not sent")

// startStdioLink starts the child of c and makes it the link of c.
func startStdioLink(ctx context.Context, c *Conn) error {
	if c.opt.OnStart != nil {
		c.opt.OnStart()
	}
	child, err := process.Start(ctx, process.Options{
		Command: c.server.Command, Args: c.server.Args, Dir: c.server.Cwd,
		Env:  process.SafeEnv(os.Environ(), c.server.Env),
		Shim: c.opt.Executable, Spare: c.opt.Spare, Stderr: c.opt.Stderr, Grace: c.opt.Grace, Kill: c.opt.Kill,
	})
	if err != nil {
		return &TransportError{Server: c.server.Name, Op: "start", Err: err}
	}
	l := &stdioLink{c: c, child: child, queue: make(chan *job), gone: make(chan struct{})}
	c.link = l // before anything can be answered
	c.wg.Go(l.write)
	c.wg.Go(l.read)
	return nil
}

func (l *stdioLink) roundTrip(ctx context.Context, x *exchange) (mcp.Message, error) {
	if err := l.write1(ctx, x.body); err != nil {
		return mcp.Message{}, err
	}
	select {
	case o := <-x.reply:
		return o.msg, o.err
	case <-ctx.Done():
		return mcp.Message{}, ctx.Err()
	}
}

func (l *stdioLink) send(ctx context.Context, body []byte) error { return l.write1(ctx, body) }

func (l *stdioLink) cancel(x *exchange, reason string) {
	ctx, stop := context.WithTimeout(l.c.life, cancelTimeout)
	defer stop()
	_ = l.write1(ctx, cancelled(x, reason)) // a child that is gone needs no cancel
}

// write1 hands one message to the writer and waits until it is written.
func (l *stdioLink) write1(ctx context.Context, body []byte) error {
	j := &job{body: body, done: make(chan error, 1)}
	select {
	case l.queue <- j:
	case <-l.gone:
		return l.transport("send", false, l.exit())
	case <-ctx.Done():
		return l.transport("send", false, errNotSent)
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if j.claimed.CompareAndSwap(false, true) {
			return l.transport("send", false, errNotSent)
		}
		return l.transport("send", true, ctx.Err())
	}
}

// write is the one writer, so that a child that does not read holds up nobody who
// has a deadline.
func (l *stdioLink) write() {
	for {
		select {
		case <-l.gone:
			return
		case j := <-l.queue:
			if !j.claimed.CompareAndSwap(false, true) {
				continue
			}
			n, err := l.child.Stdin().Write(wire.AppendLine(nil, j.body))
			if err != nil {
				err = l.transport("send", n > 0, l.whyDeaf(err))
			}
			j.done <- err
		}
	}
}

// exitWait is how long a failed write waits to hear that the child is gone, which
// says more than a broken pipe.
const exitWait = 2 * time.Second

// whyDeaf says why the child takes no more input.
func (l *stdioLink) whyDeaf(err error) error {
	t := time.NewTimer(exitWait)
	defer t.Stop()
	select {
	case <-l.gone:
		return l.exit()
	case <-t.C:
		return err
	}
}

func (l *stdioLink) read() {
	in := l.c.paced(l.c.life, l.child.Stdout())
	lines := wire.NewLines(in, l.c.limit)
	for {
		line, err := lines.Next()
		in.next()
		var long *wire.TooLongError
		if errors.As(err, &long) {
			if looksLikeMessage(long.Prefix) {
				l.c.tooLarge(long.Prefix)
			} else {
				l.c.garbage(long.Prefix, err)
			}
			continue
		}
		if err != nil {
			l.end(err)
			return
		}
		l.c.receive(line)
	}
}

func looksLikeMessage(prefix []byte) bool {
	return len(prefix) > 0 && (prefix[0] == '{' || prefix[0] == '[')
}

// receive hands a line or event to whom it is meant for.
func (c *Conn) receive(raw []byte) {
	m, err := mcp.Parse(raw)
	if errors.Is(err, mcp.ErrBatch) {
		parts, err := mcp.SplitBatch(raw)
		if err != nil {
			c.garbage(raw, err)
			return
		}
		for _, part := range parts {
			if len(part) > 0 && part[0] == '{' {
				c.receive(part)
			}
		}
		return
	}
	if err != nil {
		c.garbage(raw, err)
		var env *mcp.EnvelopeError
		if errors.As(err, &env) && env.Kind != mcp.KindRequest {
			if x := c.router.take(env.ID); x != nil {
				x.end(outcome{err: &ProtocolError{Server: c.server.Name, Msg: "its answer cannot be read", Err: err}})
			}
		}
		return
	}
	switch m.Kind() {
	case mcp.KindResponse:
		c.router.response(m)
	case mcp.KindNotification:
		c.router.notification(nil, m)
		c.stray()
	case mcp.KindRequest:
		c.inbound.request(c.life, nil, m)
		c.stray()
	}
}

// end ends everything that waits: the child's output is over, so the child is
// taken down too.
func (l *stdioLink) end(err error) {
	_ = l.child.Stop() // its exit is reported below
	if exit := l.exit(); exit != nil || errors.Is(err, io.EOF) {
		err = exit
	}
	l.c.router.fail(l.transport("receive", true, err))
	close(l.gone)
	l.c.end()
}

// exit says how the child ended, with its last words.
func (l *stdioLink) exit() error {
	err := l.child.Err()
	if err == nil {
		err = errors.New("the server exited")
	} else {
		err = fmt.Errorf("the server exited: %w", err)
	}
	if lines := l.child.Stderr().Lines(); len(lines) > 0 {
		err = fmt.Errorf("%w; last output: %.200q", err, lines[len(lines)-1].Text)
	}
	return err
}

func (l *stdioLink) transport(op string, written bool, err error) error {
	return &TransportError{Server: l.c.server.Name, Op: op, Written: written, Err: err}
}

func (l *stdioLink) close() error {
	err := l.child.Stop()
	<-l.gone
	return err
}

// sortedKeys keeps the order of headers and variables the same at every start.
func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
