package gateway

import (
	"context"
	"errors"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/surface"
)

// serve answers one request of a session. It ends with the session or when the
// agent cancels it, or with the token that it came with, not when the connection
// that brought it does.
func (s *session) serve(m *wire.Message, out outlet, life lifetime) answer {
	defer s.begin()()
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	defer life.hold(endFunc(cancel)).done()
	if !s.enter(m.ID, &legacyCall{cancel: cancel, out: out}) {
		return failure(wire.CodeInvalidRequest, "the id %.60s is in use", m.ID.JSON())
	}
	defer s.leave(m.ID)
	var a answer
	if s.g.opt.Tracer == nil {
		a = s.dispatch(ctx, m, out)
	} else {
		p, _ := wire.ReadParams(m.Params) // what is wrong with them is said where they are used
		a = s.g.traced(ctx, m.Method, &p, s.agent.Version, func(ctx context.Context) answer { return s.dispatch(ctx, m, out) })
	}
	if errors.Is(context.Cause(ctx), errCancelled) || s.ctx.Err() != nil || tokenEnded(ctx) != nil {
		return answer{none: true}
	}
	return a
}

func (s *session) enter(id wire.ID, c *legacyCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[id] != nil {
		return false
	}
	s.calls[id] = c
	return true
}

func (s *session) leave(id wire.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
}

func (s *session) dispatch(ctx context.Context, m *wire.Message, out outlet) answer {
	switch m.Method {
	case wire.MethodPing:
		return answer{result: []byte("{}")}
	case wire.MethodInitialize:
		return failure(wire.CodeInvalidRequest, "the session is initialized already")
	case wire.MethodDiscover, wire.MethodListen:
		return failure(wire.CodeMethodNotFound, "%s is not part of revision %s", m.Method, s.agent.Version)
	case wire.MethodSetLevel:
		return s.setLevel(ctx, m)
	}
	result, err := s.rounds(ctx, m, out)
	if err != nil {
		return s.g.explain(ctx, s.end, s.agent, m.Method, err)
	}
	if m.Method == wire.MethodToolsList {
		s.g.headers.of(tableKey(s.end, &s.agent)).learn(result)
	}
	return answer{result: result}
}

// setLevel passes the level on. Where nobody wants to know it nothing is wrong.
func (s *session) setLevel(ctx context.Context, m *wire.Message) answer {
	level, _ := jsonx.Get(m.Params, "level")
	text, _ := jsonx.Text(level)
	if severity(text) < 0 {
		return failure(wire.CodeInvalidParams, "level %.60s is no log level", level)
	}
	result, err := s.end.view.Do(ctx, s.as(), surface.Request{Method: m.Method, Params: m.Params})
	var said *wire.Error
	switch {
	case err == nil:
		return answer{result: result}
	case errors.As(err, &said) && said.Code == wire.CodeMethodNotFound:
		return answer{result: []byte("{}")}
	}
	return s.g.explain(ctx, s.end, s.agent, m.Method, err)
}
