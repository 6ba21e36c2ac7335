package gateway

import (
	"context"
	"errors"

	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/gateway/internal/suspend"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// asks reports whether a method is one during which a server may ask for input.
func asks(method string) bool {
	return method == mcp.MethodToolsCall || method == mcp.MethodPromptsGet || method == mcp.MethodResourcesRead
}

// subject names a request for a state that must fit it: endpoint, method, name.
func (q *request) subject() string {
	return q.end.key + " " + q.p.Describe(q.Method)
}

// run sends a request to the view and answers with what comes back.
func (g *Gateway) run(ctx context.Context, q *request) response {
	var st state
	if q.p.Retry {
		var bad *mcp.Error
		if st, bad = g.resumes(q); bad != nil {
			return response{err: bad}
		}
		switch st.Kind {
		case stateSuspended:
			return g.resume(ctx, q, st)
		case stateLogin:
			if a, over := g.afterLogin(ctx, q, st); over {
				return a
			}
			q.Params = jsonx.Apply(q.Params, retryMembers()...)
		case stateAgain:
			q.Params = jsonx.Apply(q.Params, retryMembers()...)
		}
	}
	if asks(q.Method) && suspend.Capable(q.agent.Capabilities) {
		return g.runSuspendable(ctx, q)
	}
	req := q.Request
	req.OnNotification = q.notifier()
	result, err := q.end.view.Do(ctx, q.agent, req)
	return g.settle(ctx, q, result, err)
}

// retryMembers takes out of the params what means nothing to a server, since the
// state was ours.
func retryMembers() []jsonx.Edit {
	return []jsonx.Edit{{Key: "requestState"}, {Key: "inputResponses"}}
}

// resumes reads the state of a retry. Foreign ones pass untouched.
func (g *Gateway) resumes(q *request) (state, *mcp.Error) {
	text, ok := jsonx.StrictText(member(q.Params, "requestState"))
	if !ok {
		return state{}, nil
	}
	st, err := g.seal.open(text, owner(q.agent), q.subject())
	switch {
	case errors.Is(err, errForeignState):
		return state{}, nil
	case err != nil:
		return state{}, mcp.Errorf(mcp.CodeInvalidParams, "%v", err)
	}
	return st, nil
}

func member(obj []byte, key string) []byte {
	v, _ := jsonx.Get(obj, key)
	return v
}

// settle turns what came back into an answer.
func (g *Gateway) settle(ctx context.Context, q *request, result []byte, err error) response {
	if err != nil {
		return g.failed(ctx, q, err)
	}
	if q.Method == mcp.MethodToolsList {
		g.headers.Of(tableKey(q.end, &q.agent)).Learn(result)
	}
	return g.finished.complete(q.end.key, q.Method, result)
}

// notifier passes on what belongs to the request: progress, and log messages where
// they were asked for. Nothing else may stand on its stream.
func (q *request) notifier() func(mcp.Message) {
	out, level := q.out, q.level
	return func(m mcp.Message) {
		if m.Method == mcp.MethodNotifyProgress || m.Method == mcp.MethodNotifyMessage && stream.LevelReached(level, m.Params) {
			out.Send(stream.Raw(m))
		}
	}
}
