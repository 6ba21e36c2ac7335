package gateway

import (
	"context"
	"errors"

	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// serve answers one request of a session. It ends with the session or when the
// agent cancels it, or with the token that it came with, not when the connection
// that brought it does.
func (s *session) serve(m *mcp.Message, out stream.Sender, life lifetime.Lifetime) response {
	defer s.begin()()
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	defer life.Hold(lifetime.EndFunc(cancel)).Done()
	if !s.enter(m.ID, &legacyCall{cancel: cancel, out: out}) {
		return failure(mcp.CodeInvalidRequest, "the id %.60s is in use", m.ID.JSON())
	}
	defer s.leave(m.ID)
	var a response
	if s.g.opt.Tracer == nil {
		a = s.dispatch(ctx, m, out)
	} else {
		p, _ := mcp.ReadParams(m.Params) // what is wrong with them is said where they are used
		a = s.g.traced(ctx, m.Method, &p, s.agent.Version, func(ctx context.Context) response { return s.dispatch(ctx, m, out) })
	}
	if errors.Is(context.Cause(ctx), errCancelled) || s.ctx.Err() != nil || lifetime.Ended(ctx) != nil {
		return response{none: true}
	}
	return a
}

func (s *session) enter(id mcp.ID, c *legacyCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[id] != nil {
		return false
	}
	s.calls[id] = c
	return true
}

func (s *session) leave(id mcp.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
}

func (s *session) dispatch(ctx context.Context, m *mcp.Message, out stream.Sender) response {
	switch m.Method {
	case mcp.MethodPing:
		return response{result: []byte("{}")}
	case mcp.MethodInitialize:
		return failure(mcp.CodeInvalidRequest, "the session is initialized already")
	case mcp.MethodDiscover, mcp.MethodListen:
		return failure(mcp.CodeMethodNotFound, "%s is not part of revision %s", m.Method, s.agent.Version)
	case mcp.MethodSetLevel:
		return s.setLevel(ctx, m)
	}
	result, err := s.rounds(ctx, m, out)
	if err != nil {
		return s.g.explain(ctx, s.end, s.agent, m.Method, err)
	}
	if m.Method == mcp.MethodToolsList {
		s.g.headers.Of(tableKey(s.end, &s.agent)).Learn(result)
	}
	return response{result: result}
}

// setLevel passes the level on. Where nobody wants to know it nothing is wrong.
func (s *session) setLevel(ctx context.Context, m *mcp.Message) response {
	level, _ := jsonx.Get(m.Params, "level")
	text, _ := jsonx.Text(level)
	if stream.Severity(text) < 0 {
		return failure(mcp.CodeInvalidParams, "invalid log level %.60s", level)
	}
	result, err := s.end.view.Do(ctx, s.as(), mcp.Request{Method: m.Method, Params: m.Params})
	var said *mcp.Error
	switch {
	case err == nil:
		return response{result: result}
	case errors.As(err, &said) && said.Code == mcp.CodeMethodNotFound:
		return response{result: []byte("{}")}
	}
	return s.g.explain(ctx, s.end, s.agent, m.Method, err)
}
