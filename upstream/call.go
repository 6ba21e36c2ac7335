package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// Bounds of a conversation with a server that asks before it answers.
const (
	maxRounds      = 10 // with questions
	maxEmptyRounds = 3  // without: the server only asks to come back
)

// Call is Do for callers that answer server requests themselves: elicitation, sampling
// and roots go to answer, in the legacy protocol as requests of the server, in the
// stateless one as `input_required` results and retries. A gateway does not use it:
// there the agent answers.
func (c *Conn) Call(ctx context.Context, req mcp.Request, answer mcp.Responder) ([]byte, error) {
	req.OnRequest = answer
	params := req.Params
	for round, empty := 1, 0; ; round++ {
		req.Params = params
		result, err := c.callOnce(ctx, req)
		if err != nil {
			return nil, err
		}
		switch kind := mcp.ResultType(result); kind {
		case mcp.ResultComplete:
			return result, nil
		case mcp.ResultInputRequired:
		default:
			return nil, &ProtocolError{Server: c.server.Name, Msg: fmt.Sprintf("it answered with the unknown resultType %q", kind)}
		}
		questions, asked := jsonx.Get(result, "inputRequests")
		if !asked {
			empty++
		}
		if round >= maxRounds || empty >= maxEmptyRounds {
			return nil, &ProtocolError{Server: c.server.Name, Msg: "it asks for input again and again"}
		}
		if params, err = c.nextRound(ctx, req.Params, result, questions, answer); err != nil {
			return nil, err
		}
	}
}

// callOnce repeats a call once after a header mismatch: the tool's annotations may
// have changed, or were never read.
func (c *Conn) callOnce(ctx context.Context, req mcp.Request) ([]byte, error) {
	result, err := c.Do(ctx, req)
	var we *mcp.Error
	if req.Method != mcp.MethodToolsCall || !c.mirrorsHeaders() || !errors.As(err, &we) || we.Code != mcp.CodeHeaderMismatch {
		return result, err
	}
	if _, listErr := c.List(ctx, mcp.MethodToolsList); listErr != nil {
		return nil, err
	}
	return c.Do(ctx, req)
}

// nextRound answers the questions and makes the params of the repeat. The state is
// echoed to the byte, and only when there was one.
func (c *Conn) nextRound(ctx context.Context, params, result, questions []byte, answer mcp.Responder) ([]byte, error) {
	edits := []jsonx.Edit{{Key: "inputResponses"}, {Key: "requestState"}}
	if state, ok := jsonx.Get(result, "requestState"); ok {
		edits[1].Value = state
	}
	if questions != nil {
		responses, err := c.answers(ctx, questions, answer)
		if err != nil {
			return nil, err
		}
		edits[0].Value = responses
	}
	return jsonx.Apply(params, edits...), nil
}

func (c *Conn) answers(ctx context.Context, questions []byte, answer mcp.Responder) ([]byte, error) {
	out := []byte("{")
	m := jsonx.Object(questions)
	for n := 1; m.Next(); n++ {
		if n > limit.ServerRequestsPerCall {
			return nil, &ProtocolError{Server: c.server.Name, Msg: "it asks for too much input at once", Err: ErrLimit}
		}
		method := jsonx.GetText(m.Value, "method")
		if answer == nil {
			return nil, &ProtocolError{Server: c.server.Name, Msg: "it asks for " + method + ", which nobody here can answer"}
		}
		params, _ := jsonx.Get(m.Value, "params")
		result, werr := answer(ctx, method, params)
		if werr != nil {
			return nil, fmt.Errorf("%s asked for %s: %w", c.server.Name, method, werr)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsonx.AppendText(out, string(m.Key)), ':')
		out = append(out, result...)
	}
	if err := m.Err(); err != nil {
		return nil, &ProtocolError{Server: c.server.Name, Msg: "its inputRequests cannot be read", Err: err}
	}
	return append(out, '}'), nil
}
