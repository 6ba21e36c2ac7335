package fake

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// What it sends or holds to use up the client's memory, descriptors and goroutines.
var floodSwitches = []Info{
	{Name: "ping-flood", Value: "count, 10000", Doc: "sends that many pings at once and waits for no answer (legacy only); with on=GET on the stream of a session", On: onCall},
	{Name: "ask-flood", Value: "count, 10000", Doc: "asks for elicitation and sampling that many times at once (legacy only)", On: onCall},
	{Name: "unknown-flood", Value: "count, 10000", Doc: "sends that many notifications of methods that do not exist", On: onCall},
	{Name: "change-flood", Value: "count, 10000", Doc: "says that many times that its lists changed", On: onCall},
	{Name: "deaf", Doc: "reads nothing more from standard input after it got such a request", On: onCall, Only: "stdio"},
	{Name: "hold-answers", Doc: "never responds to a POST that carries an answer of the client", Only: "http"},
	{Name: "list-bomb", Value: "KiB per page, 1024", Doc: "tools/list has pages of that size without end", On: "tools/list"},
	{Name: "big-session-id", Value: "KiB, 64", Doc: "gives out session ids of that size (legacy only)", On: "initialize", Only: "http"},
}

// floods sends what the switches of floods ask for at a message of this method.
func (s *Server) floods(ctx context.Context, out sink, method string, modern bool) {
	if v, ok := s.sw.fire("unknown-flood", method); ok {
		s.repeat(ctx, v, func(i int) error {
			return out.send(notification(fmt.Sprintf("notifications/fake/%d", i), nil), false)
		})
	}
	if v, ok := s.sw.fire("change-flood", method); ok {
		changed := [...]string{mcp.MethodNotifyTools, mcp.MethodNotifyPrompts, mcp.MethodNotifyRes}
		s.repeat(ctx, v, func(i int) error { return out.send(notification(changed[i%len(changed)], nil), false) })
	}
	if modern {
		return
	}
	if v, ok := s.sw.fire("ping-flood", method); ok {
		s.repeat(ctx, v, func(i int) error {
			return out.send(newFrame(mcp.AppendRequest(nil, floodID(i), mcp.MethodPing, nil)), false)
		})
	}
	if v, ok := s.sw.fire("ask-flood", method); ok {
		s.repeat(ctx, v, func(i int) error { return out.send(question(i), false) })
	}
}

// repeat calls send as often as the switch says, until it fails or ctx ends.
func (s *Server) repeat(ctx context.Context, v value, send func(i int) error) {
	for i := range v.number(10000) {
		if ctx.Err() != nil || send(i) != nil {
			return
		}
	}
}

// floodID differs from the ids of questions whose answers are awaited.
func floodID(i int) mcp.ID { return mcp.TextID(fmt.Sprint("flood-", i)) }

func question(i int) frame {
	if i%2 == 0 {
		return newFrame(mcp.AppendRequest(nil, floodID(i), mcp.MethodElicit,
			[]byte(`{"mode":"form","message":"And now?","requestedSchema":{"type":"object","properties":{}}}`)))
	}
	return newFrame(mcp.AppendRequest(nil, floodID(i), mcp.MethodSample,
		[]byte(`{"messages":[{"role":"user","content":{"type":"text","text":"Say something."}}],"maxTokens":100}`)))
}

// holds waits until the client gives up a POST that carries an answer, when the
// switch says so.
func (s *Server) holds(r *http.Request, msg mcp.Message) bool {
	if msg.Kind() != mcp.KindResponse {
		return false
	}
	if _, ok := s.sw.fire("hold-answers", r.Method); !ok {
		return false
	}
	ctx, stop := joined(r.Context(), s.ctx)
	defer stop()
	<-ctx.Done()
	return true
}

// bombPage is one page of a list that never ends.
func (s *Server) bombPage(ex *exchange, kib int) []byte {
	cursor, _ := jsonx.Text(ex.p.Cursor)
	var n int
	_, _ = fmt.Sscanf(cursor, "bomb-%d", &n) // the first page has none
	def := fmt.Appendf(nil, `{"name":"bomb_%d","description":"%s","inputSchema":{"type":"object"}}`, n, strings.Repeat("x", kib<<10))
	return s.fresh(ex, listOf("tools", [][]byte{def}, fmt.Appendf(nil, `"bomb-%d"`, n+1)))
}
