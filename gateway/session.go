package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface"
)

// session is a conversation with a client of the legacy protocol, on any transport.
type session struct {
	g             *Gateway
	id            string
	end           *endpoint
	owner         authn.Identity // who may use it
	agent         surface.Agent
	out           stream.Sender   // for what belongs to no request
	tracks        stream.Replays  // of streams that may be taken up again
	ctx           context.Context // ends with the session
	cancel        context.CancelCauseFunc
	sse           bool // of the transport of 2024-11-05
	notifications notificationQueue
	verbose       bool // the client says more about itself than is kept
	// Guarded by sessions:
	timer   *time.Timer // idle
	greeted bool        // an old one has had its handshake

	mu    sync.Mutex // guards what follows
	calls map[mcp.ID]*legacyCall
	asked map[int64]chan mcp.Message // questions of ours
	next  int64
	ready bool
	used  time.Time
	busy  int // requests and open streams
	// expires is when the newest token that the session was used with ends, zero for
	// never.
	expires time.Time
}

// refreshGrace is how long after the end of an access token a session waits for its
// client to come with a refreshed one. Its streams and calls have ended by then.
const refreshGrace = 5 * time.Minute

// legacyCall is one request of the agent in flight.
type legacyCall struct {
	cancel context.CancelCauseFunc
	out    stream.Sender
}

var (
	errCancelled = errors.New("the agent cancelled the request")
	errEnded     = errors.New("the session has ended")
)

// newSession makes a session from the params of initialize. It is not registered.
func (g *Gateway) newSession(id authn.Identity, e *endpoint, out stream.Sender, params []byte) *session {
	s := &session{
		g: g, id: g.newSessionID(), end: e, owner: id, agent: agentOf(id), out: out, expires: id.Expires,
		calls: map[mcp.ID]*legacyCall{}, asked: map[int64]chan mcp.Message{}, used: time.Now(),
	}
	s.ctx, s.cancel = context.WithCancelCause(g.life)
	s.agent.Lane = "s" + rand.Text() // an id of its own: lanes are logged
	s.agent.Session = &policy.Session{}
	s.agent.Version = jsonx.GetText(params, "protocolVersion")
	if !mcp.Known(s.agent.Version) || mcp.Stateless(s.agent.Version) {
		s.agent.Version = mcp.LatestLegacy
	}
	s.tracks.Init(&g.held, id.Principal)
	s.agent.Capabilities = s.detail(params, "capabilities")
	s.agent.ClientInfo = s.detail(params, "clientInfo")
	s.agent.Ask = func(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error) {
		return s.ask(ctx, s.out, method, params)
	}
	return s
}

// detail keeps what a client says about itself, without the rest of the message.
func (s *session) detail(params []byte, key string) []byte {
	v := member(params, key)
	if len(v) > limit.ClientDetailBytes {
		s.verbose = true
		return nil
	}
	return bytes.Clone(v)
}

// initialize is the answer to the handshake.
func (s *session) initialize(ctx context.Context) response {
	if s.verbose {
		return failure(mcp.CodeInvalidParams, "capabilities or clientInfo is larger than %d bytes", limit.ClientDetailBytes)
	}
	info, err := s.end.view.Info(ctx, s.agent)
	if err != nil {
		return s.g.explain(ctx, s.end, s.agent, mcp.MethodInitialize, err)
	}
	out := jsonx.AppendText([]byte(`{"protocolVersion":`), s.agent.Version)
	out = append(append(out, `,"capabilities":`...), info.Capabilities...)
	out = append(append(out, `,"serverInfo":`...), info.Server...)
	if info.Instructions != "" {
		out = jsonx.AppendText(append(out, `,"instructions":`...), info.Instructions)
	}
	return response{result: append(out, '}')}
}

// begin counts something that keeps the session from being idle.
func (s *session) begin() (end func()) {
	s.mu.Lock()
	s.busy++
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.busy--
		s.used = time.Now()
		s.mu.Unlock()
	}
}

// extend notes that the session was used with a token that ends at expires.
func (s *session) extend(expires time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if expires.After(s.expires) {
		s.expires = expires
	}
}

// left is how long the session may last if nobody uses it.
func (s *session) left(idle time.Duration) time.Duration {
	left := idle - s.idleFor()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expires.IsZero() || s.owner.Credential == "" {
		return left
	}
	until := time.Until(s.expires)
	if s.owner.Refreshable {
		until += refreshGrace
	}
	return min(left, until)
}

// as is who the session's requests are made as: with the newest token's end.
func (s *session) as() surface.Agent {
	a := s.agent
	s.mu.Lock()
	a.Expires = s.expires
	s.mu.Unlock()
	return a
}

// idleFor is how long nobody used the session.
func (s *session) idleFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy > 0 {
		return 0
	}
	return time.Since(s.used)
}

// close ends the session and what was held for it.
func (s *session) close(cause error) {
	s.cancel(cause)
	s.tracks.Discard()
	if b, ok := s.out.(*stream.Queue); ok {
		b.Discard()
	}
	s.end.view.Close(s.agent)
}

// take handles what is no request: notifications, and answers to questions of ours.
func (s *session) take(m *mcp.Message) {
	if m.Kind() == mcp.KindResponse {
		s.answered(*m)
		return
	}
	switch m.Method {
	case mcp.MethodNotifyInit:
		s.listen()
	case mcp.MethodNotifyCancel:
		s.cancelled(m.Params)
	default:
		s.notified(m)
	}
}

// cancelled ends the request that the agent does not want any more.
func (s *session) cancelled(params []byte) {
	id, ok := mcp.RawID(member(params, "requestId"))
	if !ok {
		return
	}
	s.mu.Lock()
	c := s.calls[id]
	s.mu.Unlock()
	if c != nil {
		c.cancel(errCancelled)
	}
}

// listen hears of changes for as long as the session lasts. In the legacy protocol nobody
// has to ask for them.
func (s *session) listen() {
	s.mu.Lock()
	first := !s.ready
	s.ready = true
	s.mu.Unlock()
	if !first {
		return
	}
	s.g.spawn(func() {
		all := surface.Subscription{Tools: true, Prompts: true, Resources: true}
		for wait := time.Second; s.ctx.Err() == nil; wait = min(2*wait, time.Minute) {
			if err := s.end.view.Listen(s.ctx, s.as(), all, s.heard); err == nil || s.ctx.Err() != nil {
				return
			}
			select {
			case <-time.After(wait):
			case <-s.ctx.Done():
			}
		}
	})
}

// heard passes on what belongs to no request. What a server says while the agent
// waits for exactly one answer most likely belongs to that, so it goes the same way
// and arrives before it.
func (s *session) heard(m mcp.Message) {
	if m.Method == mcp.MethodNotifyMessage || m.Method == mcp.MethodNotifyProgress {
		if c := s.only(); c != nil && c.out.Send(stream.Raw(m)) {
			return
		}
	}
	s.out.Send(stream.Raw(m))
}

func (s *session) only() *legacyCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) != 1 {
		return nil
	}
	for _, c := range s.calls {
		return c
	}
	return nil
}
