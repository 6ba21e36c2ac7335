package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// Reconnection times of event streams in the older era.
const (
	defaultRetry = time.Second
	maxRetry     = 30 * time.Second
)

// position is where in a resumable stream we are.
type position struct {
	lastID string
	retry  time.Duration
}

// readStream reads events until the response to x comes. In the older era a
// stream that breaks may be resumed where the server numbers its events; in the
// modern one the request would have to be asked again, which is not ours to
// decide.
func (l *httpLink) readStream(ctx context.Context, resp *http.Response, x *exchange) (mcp.Message, error) {
	pos := position{retry: defaultRetry}
	m, err := l.events(ctx, resp, x, &pos)
	for attempt := 0; errors.Is(err, errStreamEnded) && pos.lastID != "" && !mcp.Stateless(x.version) && attempt < maxResumes; attempt++ {
		if err := retry.Sleep(ctx, pos.retry); err != nil {
			return mcp.Message{}, err
		}
		again, getErr := l.get(ctx, pos.lastID)
		if l.c.mayTryAgain(ctx, getErr) {
			again, getErr = l.get(ctx, pos.lastID)
		}
		if getErr != nil && (ctx.Err() != nil || errors.Is(getErr, ErrClosed)) {
			return mcp.Message{}, getErr
		}
		if getErr != nil {
			// The request was sent, whatever is wrong with fetching its answer.
			return mcp.Message{}, l.transport("receive", true, fmt.Errorf("%w, which could not be fetched later: %v", errStreamEnded, getErr))
		}
		m, err = l.events(ctx, again, x, &pos)
	}
	if errors.Is(err, errStreamEnded) {
		return m, l.transport("receive", true, err)
	}
	return m, err
}

// maxResumes bounds how often one answer's stream is picked up again; the
// caller's deadline is usually shorter.
const maxResumes = 100

// errStreamEnded says that an event stream ended before the answer came.
var errStreamEnded = errors.New("the event stream ended before the answer")

// events reads one event stream. x is the request it belongs to, nil for the
// stream of the whole session.
func (l *httpLink) events(ctx context.Context, resp *http.Response, x *exchange, pos *position) (mcp.Message, error) {
	defer func() { _ = resp.Body.Close() }()
	in := l.c.paced(ctx, resp.Body)
	r := wire.NewEvents(in, l.c.limit)
	for {
		ev, err := r.Next()
		in.next()
		var long *wire.TooLongError
		if errors.As(err, &long) {
			if m, err, final := l.longEvent(long, x); final {
				return m, err
			}
			l.c.stray()
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return mcp.Message{}, ctx.Err()
			}
			return mcp.Message{}, fmt.Errorf("%w: %w", errStreamEnded, err)
		}
		if ev.HasID {
			pos.lastID = ev.ID
		}
		if ev.Retry > 0 {
			pos.retry = min(ev.Retry, maxRetry)
		}
		if ev.Type != "message" || len(ev.Data) == 0 {
			l.c.stray()
			continue
		}
		if m, err, final := l.event(ctx, ev.Data, x); final {
			return m, err
		}
	}
}

func (l *httpLink) longEvent(long *wire.TooLongError, x *exchange) (mcp.Message, error, bool) {
	l.c.counts.tooLarge.Add(1)
	id, kind := mcp.Peek(long.Prefix)
	n, ours := id.Int()
	answer := kind != mcp.KindRequest && kind != mcp.KindNotification
	if x != nil && answer && (!id.Present() || ours && n == x.id) {
		return mcp.Message{}, &TooLargeError{Server: l.c.server.Name, Limit: long.Limit}, true
	}
	return mcp.Message{}, nil, false
}

// event handles one message of a stream and reports whether it ended the wait.
func (l *httpLink) event(ctx context.Context, data []byte, x *exchange) (mcp.Message, error, bool) {
	parts, err := mcp.SplitBatch(data)
	if err != nil {
		l.c.garbage(data, err)
		return mcp.Message{}, nil, false
	}
	for _, part := range parts {
		m, err := mcp.Parse(part)
		if err != nil {
			l.c.garbage(part, err)
			if x != nil && unreadableAnswer(err, x.id) {
				return mcp.Message{}, l.protocol("its answer cannot be read", err), true
			}
			continue
		}
		switch m.Kind() {
		case mcp.KindResponse:
			if x != nil && answers(m, x) {
				return m, nil, true
			}
			l.c.router.response(m)
		case mcp.KindNotification:
			l.c.router.notification(x, m)
			l.c.stray()
		case mcp.KindRequest:
			l.c.inbound.request(ctx, x, m)
			l.c.stray()
		}
	}
	return mcp.Message{}, nil, false
}

// unreadableAnswer reports whether what could not be read was the answer to id.
func unreadableAnswer(err error, id int64) bool {
	var env *mcp.EnvelopeError
	if !errors.As(err, &env) || env.Kind == mcp.KindRequest {
		return false
	}
	n, ours := env.ID.Int()
	return ours && n == id
}

// mayTryAgain asks whether something can be done about a refusal that no caller can
// act upon.
func (c *Conn) mayTryAgain(ctx context.Context, err error) bool {
	var refusal *UnauthorizedError
	return c.opt.Refused != nil && errors.As(err, &refusal) && c.opt.Refused(ctx, refusal) == nil
}

// get opens an event stream of the older era, from lastID on where given.
func (l *httpLink) get(ctx context.Context, lastID string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.c.server.URL, nil)
	if err != nil {
		return nil, l.transport("connect", false, err)
	}
	l.setHeader(req, l.c.version, l.session.Load())
	req.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		req.Header.Set(wire.HeaderLastEvent, lastID)
	}
	resp, err := l.do(req)
	if err != nil {
		return nil, err
	}
	kind := mediaType(resp.Header)
	if resp.StatusCode == http.StatusOK && kind == "text/event-stream" {
		return resp, nil
	}
	defer drain(resp.Body)
	if err := l.refused(resp); err != nil {
		return nil, err
	}
	return nil, l.status(resp, kind)
}

// openStream keeps the session's own stream open, on which servers of the older
// era send what belongs to no request. It ends with the connection, or when the
// server does not offer it. It returns when the server has answered or openWait
// has passed: a request that overtakes the stream may find the server without a
// way to ask back.
func (l *httpLink) openStream(ctx context.Context) {
	if l.stream.Swap(true) {
		return
	}
	answered := make(chan struct{})
	defer func() {
		t := time.NewTimer(openWait)
		defer t.Stop()
		select {
		case <-answered:
		case <-t.C:
		case <-ctx.Done():
		}
	}()
	l.c.wg.Go(func() {
		defer l.stream.Store(false)
		tell := sync.OnceFunc(func() { close(answered) })
		defer tell()
		pos := position{retry: defaultRetry}
		wait := retry.Backoff{First: defaultRetry, Limit: maxRetry}
		var restarts restarts
		worked := false
		for l.c.life.Err() == nil {
			resp, err := l.get(l.c.life, pos.lastID)
			tell()
			var status *StatusError
			switch {
			case errors.As(err, &status) && status.Status < 500:
				return
			case errors.Is(err, ErrUnauthorized) && (!worked || !l.c.mayTryAgain(l.c.life, err)):
				return // it never was for us, or is not any more
			}
			if err == nil {
				worked = true
				wait.Reset()
				opened := time.Now()
				_, _ = l.events(l.c.life, resp, nil, &pos) // it always ends in an error; the next round decides
				if retry.Sleep(l.c.life, restarts.wait(pos.retry, time.Since(opened))) != nil {
					return
				}
				continue
			}
			if retry.Sleep(l.c.life, wait.Next()) != nil {
				return
			}
		}
	})
}

// restarts decides how long to wait before a stream that ended is opened again.
type restarts struct {
	short int // streams in a row that did not live for limit.ServerStreamLife
	grow  retry.Backoff
}

// wait is what the server asked for, unless its streams end at once again and again.
func (r *restarts) wait(asked, lived time.Duration) time.Duration {
	if lived >= limit.ServerStreamLife {
		*r = restarts{}
		return asked
	}
	if r.short++; r.short <= limit.ServerStreamRestarts {
		return asked
	}
	r.grow.First, r.grow.Limit = defaultRetry, maxRetry
	return max(asked, r.grow.Next())
}

// openWait bounds how long a new session waits for its stream.
const openWait = time.Second
