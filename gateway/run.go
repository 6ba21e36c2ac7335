package gateway

import (
	"context"
	"errors"

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
func (g *Gateway) run(ctx context.Context, q *request) answer {
	var st state
	if q.p.Retry {
		var bad *mcp.Error
		if st, bad = g.resumes(q); bad != nil {
			return answer{err: bad}
		}
		switch st.Kind {
		case stateParked:
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
	if asks(q.Method) && capable(q.agent.Capabilities) {
		return g.runParkable(ctx, q)
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
func (g *Gateway) settle(ctx context.Context, q *request, result []byte, err error) answer {
	if err != nil {
		return g.failed(ctx, q, err)
	}
	if q.Method == mcp.MethodToolsList {
		g.headers.of(tableKey(q.end, &q.agent)).learn(result)
	}
	return g.finished.complete(q.end.key, q.Method, result)
}

// notifier passes on what belongs to the request: progress, and log messages where
// they were asked for. Nothing else may stand on its stream.
func (q *request) notifier() func(mcp.Message) {
	out, level := q.out, q.level
	return func(m mcp.Message) {
		if m.Method == mcp.MethodNotifyProgress || m.Method == mcp.MethodNotifyMessage && loud(level, m.Params) {
			out.send(raw(m))
		}
	}
}

// loud reports whether a log message reaches the level that was asked for.
func loud(level string, params []byte) bool {
	least := severity(level)
	return least >= 0 && severity(jsonx.GetText(params, "level")) >= least
}

// severity orders log levels; -1 is no level.
func severity(level string) int {
	for i, l := range [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"} {
		if l == level {
			return i
		}
	}
	return -1
}

// capable reports whether an agent can answer any question of a server.
func capable(caps []byte) bool {
	for m := jsonx.Object(caps); m.Next(); {
		switch string(m.Key) {
		case "elicitation", "sampling", "roots":
			return true
		}
	}
	return false
}

// canAnswer says why an agent cannot answer a question; nil when it can.
func canAnswer(caps []byte, method string, params []byte) *mcp.Error {
	name := ""
	switch method {
	case mcp.MethodElicit:
		name = "elicitation"
	case mcp.MethodSample:
		name = "sampling"
	case mcp.MethodRoots:
		name = "roots"
	default:
		return mcp.Errorf(mcp.CodeMethodNotFound, "%s is not supported by this client", method)
	}
	have, ok := jsonx.Get(caps, name)
	if !ok || jsonx.TypeOf(have) != "object" {
		return mcp.Errorf(mcp.CodeMethodNotFound, "%s is not supported by this client", method)
	}
	if method == mcp.MethodElicit && jsonx.GetText(params, "mode") == "url" && !canVisit(caps) {
		return mcp.Errorf(mcp.CodeInvalidParams, "elicitation by URL is not supported by this client")
	}
	return nil
}

// canVisit reports whether an agent can show a person a URL.
func canVisit(caps []byte) bool {
	v, ok := jsonx.Path(caps, "elicitation", "url")
	return ok && jsonx.TypeOf(v) == "object"
}
