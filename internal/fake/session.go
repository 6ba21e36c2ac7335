package fake

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

var (
	errCancelled = errors.New("cancelled by the client")
	errStopped   = errors.New("the connection ended")
)

// sink takes the messages that belong to one request, or to a connection.
type sink interface {
	send(f frame, final bool) error // final: the answer to the request
	end()                           // nothing more will come
}

// session is one conversation: a stdio connection, a legacy HTTP session, an old
// HTTP+SSE stream, or a single modern POST.
type session struct {
	srv       *Server
	id        string // "" for a modern POST
	transport string
	ctx       context.Context // ends with the conversation
	cancel    context.CancelCauseFunc

	mu         sync.Mutex // guards what follows
	version    string     // negotiated by initialize
	caps       []byte     // of the client, from initialize
	ready      bool       // initialize was answered
	requests   int        // for session-lost
	served     int        // for crash-loop
	lastAsk    int64
	asks       map[mcp.ID]chan mcp.Message
	calls      map[mcp.ID]context.CancelCauseFunc
	push       sink // where messages go that belong to no request
	lastStream int
	streams    map[string]*stream // event streams that may be resumed
	subscribed map[string]bool    // resource URIs
}

// expect registers a request as soon as it is read, so that it can be cancelled by
// its id even before it is served.
func (sess *session) expect(id mcp.ID) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.calls[id] = func(error) { sess.calls[id] = nil }
}

// begin gives an expected request its context.
func (sess *session) begin(ctx context.Context, id mcp.ID) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	sess.mu.Lock()
	if early, ok := sess.calls[id]; ok && early == nil {
		cancel(errCancelled)
	}
	sess.calls[id] = cancel
	sess.mu.Unlock()
	return ctx, func() {
		sess.mu.Lock()
		delete(sess.calls, id)
		sess.mu.Unlock()
		cancel(nil)
	}
}

func (sess *session) cancelCall(id mcp.ID) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if cancel := sess.calls[id]; cancel != nil {
		cancel(errCancelled)
	}
}

// ask sends a request to the client and waits for its answer.
func (sess *session) ask(ctx context.Context, out sink, method string, params []byte) ([]byte, error) {
	sess.mu.Lock()
	sess.lastAsk++
	id := mcp.IntID(sess.lastAsk)
	answer := make(chan mcp.Message, 1)
	sess.asks[id] = answer
	sess.mu.Unlock()
	defer func() {
		sess.mu.Lock()
		delete(sess.asks, id)
		sess.mu.Unlock()
	}()
	if err := out.send(newFrame(mcp.AppendRequest(nil, id, method, params)), false); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, fmt.Errorf("the client answered %s with an error: %w", method, mcp.ParseError(m.Error))
		}
		return m.Result, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// answered hands the client's response to the question it answers.
func (sess *session) answered(m mcp.Message) {
	sess.mu.Lock()
	answer := sess.asks[m.ID]
	delete(sess.asks, m.ID)
	sess.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

func (sess *session) setPush(out sink) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.push = out
}

// broadcast tells every client about a change: legacy ones on their connection,
// modern ones that subscribed on their listen streams.
func (s *Server) broadcast(method string, params []byte) {
	uri := jsonx.GetText(params, "uri")
	for _, sess := range s.allSessions() {
		sess.mu.Lock()
		out, ok := sess.push, sess.ready && (uri == "" || sess.subscribed[uri])
		sess.mu.Unlock()
		if ok && out != nil {
			// A client that is gone misses the change, as in life.
			_ = out.send(notification(method, params), false)
		}
	}
	for _, l := range s.allListens() {
		l.notify(method, uri, params)
	}
}

// note enters something that happened in a session.
func (s *Server) note(sess *session, e Entry) {
	e.Server = s.opts.Name
	if sess != nil {
		e.Session, e.Transport = sess.id, sess.transport
	}
	s.ledger.Add(e)
}
