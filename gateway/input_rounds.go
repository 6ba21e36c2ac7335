package gateway

import (
	"bytes"
	"context"

	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// Bounds of a conversation with a server that asks before it answers.
const (
	maxRounds      = 10 // with questions
	maxEmptyRounds = 3  // without: the server only asks to come back
)

// rounds sends a request of a client of the legacy protocol. What a server of the modern
// era asks with `input_required` is put to the agent as requests, and the call is
// repeated with the answers.
func (s *session) rounds(ctx context.Context, m *mcp.Message, out stream.Sender) ([]byte, error) {
	req := mcp.Request{
		Method: m.Method, Params: m.Params,
		OnNotification: func(n mcp.Message) { out.Send(stream.Raw(n)) },
		OnRequest: func(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error) {
			return s.ask(ctx, out, method, params)
		},
	}
	for round, empty := 1, 0; ; round++ {
		result, err := s.end.view.Do(ctx, s.as(), req)
		if err != nil || !asks(m.Method) || !wantsInput(result) {
			return result, err
		}
		questions, asked := jsonx.Get(result, "inputRequests")
		if !asked {
			empty++
		}
		if round >= maxRounds || empty >= maxEmptyRounds {
			return nil, mcp.Errorf(mcp.CodeInternal, "the server asks for input again and again")
		}
		edits := []jsonx.Edit{{Key: "inputResponses"}, {Key: "requestState"}}
		if state, ok := jsonx.Get(result, "requestState"); ok {
			edits[1].Value = state
		}
		if asked {
			if edits[0].Value, err = s.answers(ctx, out, questions); err != nil {
				return nil, err
			}
		}
		req.Params = jsonx.Apply(req.Params, edits...)
	}
}

// wantsInput looks for the one kind of result that is no answer yet.
func wantsInput(result []byte) bool {
	return bytes.Contains(result, []byte(mcp.ResultInputRequired)) && mcp.ResultType(result) == mcp.ResultInputRequired
}

// answers puts all questions to the agent, one after the other.
func (s *session) answers(ctx context.Context, out stream.Sender, questions []byte) ([]byte, error) {
	responses := []byte("{")
	m := jsonx.Object(questions)
	for n := 0; m.Next(); n++ {
		if n == limit.CallQuestionsTotal {
			return nil, mcp.Errorf(mcp.CodeInternal, "the server asks more than %d questions at once", n)
		}
		method := jsonx.GetText(m.Value, "method")
		params := s.question(method, member(m.Value, "params"))
		result, bad := s.ask(ctx, out, method, params)
		if bad != nil {
			return nil, mcp.Errorf(mcp.CodeInternal, "the server asked for %s: %s", method, bad.Message)
		}
		if len(responses) > 1 {
			responses = append(responses, ',')
		}
		responses = append(jsonx.AppendText(responses, string(m.Key)), ':')
		responses = append(responses, result...)
	}
	if m.Err() != nil {
		return nil, mcp.Errorf(mcp.CodeInternal, "the server's inputRequests cannot be read: %v", m.Err())
	}
	return append(responses, '}'), nil
}

// question makes params fit the agent's revision: there, a question by URL has an
// id.
func (s *session) question(method string, params []byte) []byte {
	if method != mcp.MethodElicit || jsonx.GetText(params, "mode") != "url" {
		return params
	}
	if _, ok := jsonx.Get(params, "elicitationId"); ok {
		return params
	}
	return jsonx.Set(params, "elicitationId", jsonx.Quote(s.newQuestionID()))
}
