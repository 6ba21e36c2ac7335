package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"

	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/gateway/internal/suspend"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// ask sends a question of a server to a client of the legacy protocol and waits for the
// answer. It goes on the stream of the request it belongs to, or on the session's.
func (s *session) ask(ctx context.Context, out stream.Sender, method string, params []byte) ([]byte, *mcp.Error) {
	if bad := suspend.CanAnswer(s.agent.Capabilities, method, params); bad != nil {
		return nil, bad
	}
	reply := make(chan mcp.Message, 1)
	s.mu.Lock()
	full := len(s.asked) >= limit.SessionQuestions
	s.next++
	id := s.next
	if !full {
		s.asked[id] = reply
	}
	s.mu.Unlock()
	if full {
		return nil, mcp.Errorf(mcp.CodeInternal, "too many questions of servers wait for an answer of the client")
	}
	defer func() {
		s.mu.Lock()
		delete(s.asked, id)
		s.mu.Unlock()
	}()
	message := mcp.AppendRequest(nil, mcp.IntID(id), method, params)
	if !out.Send(message) && (out == s.out || !s.out.Send(message)) {
		return nil, mcp.Errorf(mcp.CodeInternal, "the agent cannot be reached")
	}
	select {
	case m := <-reply:
		if m.Error != nil {
			return nil, mcp.ParseError(m.Error)
		}
		return m.Result, nil
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	s.takeBack(out, id)
	cause := context.Cause(ctx)
	if cause == nil {
		cause = errors.Join(context.Cause(s.ctx))
	}
	return nil, mcp.Errorf(mcp.CodeInternal, "%v", cause)
}

// takeBack tells the agent that nobody waits for its answer any more.
func (s *session) takeBack(out stream.Sender, id int64) {
	params := strconv.AppendInt([]byte(`{"requestId":`), id, 10)
	params = jsonx.AppendText(append(params, `,"reason":`...), "the server does not wait any more")
	message := mcp.AppendNotification(nil, mcp.MethodNotifyCancel, append(params, '}'))
	if !out.Send(message) && out != s.out {
		s.out.Send(message)
	}
}

// answered hands over the agent's answer to a question. Answers to nothing are
// dropped.
func (s *session) answered(m mcp.Message) {
	id, ok := m.ID.Int()
	if !ok {
		return
	}
	s.mu.Lock()
	reply := s.asked[id]
	delete(s.asked, id)
	s.mu.Unlock()
	if reply != nil {
		reply <- m
	}
}

func (s *session) newQuestionID() string { return rand.Text() }
