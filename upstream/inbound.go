package upstream

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// inbound answers the requests of the server. What a server can make grow here is
// bounded: how many requests are answered at once, their size, how many answers wait
// to be sent, how many are sent at once and how long each of them takes. A server
// that exceeds the first two gets an error as its answer; one that does not accept
// answers is not read any more and then loses its connection.
type inbound struct {
	c      *Conn
	run    background // responders and writers
	logged sync.Once

	mu      sync.Mutex    // guards what follows
	asking  int           // requests whose responder runs
	bytes   int           // size of those requests
	waiting [][]byte      // answers to be sent
	writers int           // goroutines that send them
	room    chan struct{} // closed when there is room in waiting; nil when nobody waits for it
}

// request answers m, which came on the stream of x, nil if on none. It returns before
// the answer is sent, but not while too many answers wait.
func (in *inbound) request(ctx context.Context, x *exchange, m mcp.Message) {
	if m.Method == mcp.MethodPing {
		in.send(ctx, mcp.AppendResult(nil, m.ID, []byte("{}")))
		return
	}
	respond, x := in.c.router.responder(x)
	if respond == nil {
		in.send(ctx, refusal(m, mcp.CodeMethodNotFound, "%.100s is not supported by this client", m.Method))
		return
	}
	if !in.admit(x, len(m.Raw)) {
		in.send(ctx, refusal(m, mcp.CodeInternal, "too many requests at once"))
		return
	}
	size := len(m.Raw)
	m.Raw, m.Params = nil, bytes.Clone(m.Params) // a batch around it is not held
	started := in.run.start(func() {
		ctx, stop := context.WithCancel(ctx)
		defer context.AfterFunc(in.c.life, stop)()
		defer stop()
		defer in.release(x, size) // not before there was room for the answer
		in.send(ctx, answerOf(ctx, respond, m))
	})
	if !started {
		in.release(x, size)
	}
}

func refusal(m mcp.Message, code int64, format string, args ...any) []byte {
	return mcp.AppendError(nil, m.ID, mcp.Errorf(code, format, args...).JSON())
}

func answerOf(ctx context.Context, respond mcp.Responder, m mcp.Message) []byte {
	result, err := respond(ctx, m.Method, m.Params)
	if err != nil {
		return mcp.AppendError(nil, m.ID, err.JSON())
	}
	return mcp.AppendResult(nil, m.ID, result)
}

// admit counts a request of the server, and reports false when it is one too many.
func (in *inbound) admit(x *exchange, size int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.asking >= limit.ServerRequests,
		in.asking > 0 && in.bytes+size > limit.ServerRequestBytes,
		x != nil && x.asked >= limit.ServerRequestsPerCall:
		return false
	}
	in.asking++
	in.bytes += size
	if x != nil {
		x.asked++
	}
	return true
}

func (in *inbound) release(x *exchange, size int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.asking--
	in.bytes -= size
	if x != nil {
		x.asked--
	}
}

// send hands an answer to the writers. It waits while too many answers wait, until
// ctx or the connection ends; the answer is dropped then.
func (in *inbound) send(ctx context.Context, body []byte) {
	for {
		room, start := in.enqueue(body)
		if start && !in.run.start(in.write) {
			return // the connection is being closed
		}
		if room == nil {
			return
		}
		select {
		case <-room:
		case <-ctx.Done():
			return
		case <-in.c.life.Done():
			return
		}
	}
}

// enqueue adds an answer, or returns what to wait for before it is tried again. start
// says that one more writer is needed.
func (in *inbound) enqueue(body []byte) (room chan struct{}, start bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.waiting) >= limit.ServerAnswers {
		if in.room == nil {
			in.room = make(chan struct{})
		}
		return in.room, false
	}
	in.waiting = append(in.waiting, body)
	if in.writers >= limit.ServerAnswerWriters {
		return nil, false
	}
	in.writers++
	return nil, true
}

// next takes the first answer, nil when there is none: the writer ends.
func (in *inbound) next() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.waiting) == 0 {
		in.writers--
		in.waiting = nil
		return nil
	}
	body := in.waiting[0]
	in.waiting[0] = nil
	in.waiting = in.waiting[1:]
	if in.room != nil {
		close(in.room)
		in.room = nil
	}
	return body
}

// write sends answers until none is left. A server that does not accept one in time
// loses its connection.
func (in *inbound) write() {
	for body := in.next(); body != nil; body = in.next() {
		ctx, stop := context.WithTimeout(in.c.life, in.c.opt.AnswerTimeout)
		err := in.c.link.send(ctx, body)
		late := errors.Is(ctx.Err(), context.DeadlineExceeded)
		stop()
		switch {
		case err == nil || in.c.life.Err() != nil:
		case late:
			in.c.fail(&ProtocolError{Server: in.c.server.Name, Msg: "it does not accept the answers to its own requests", Err: ErrLimit})
		default:
			in.logged.Do(func() { in.c.log.Warn("an answer could not be delivered", "error", err) })
		}
	}
}

// background runs functions until it is closed.
type background struct {
	max int // how many at once; 0: any number

	mu     sync.Mutex // guards what follows, and that nothing starts after closed
	closed bool
	n      int
	wg     sync.WaitGroup
}

// start runs f, and reports false when it is too late for that or too many run.
func (b *background) start(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.max > 0 && b.n >= b.max {
		return false
	}
	b.n++
	b.wg.Go(func() {
		defer func() {
			b.mu.Lock()
			b.n--
			b.mu.Unlock()
		}()
		f()
	})
	return true
}

// close lets nothing more start and waits for what runs.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wg.Wait()
}
