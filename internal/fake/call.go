package fake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// Call is one tools/call request as its handler sees it.
type Call struct {
	Name    string
	Args    []byte      // raw arguments, {} when absent
	Params  []byte      // all params as received
	Meta    []byte      // raw _meta, nil when absent
	Header  http.Header // nil on stdio
	Modern  bool
	Version string

	s  *Server
	ex *exchange
}

func (s *Server) call(ctx context.Context, ex *exchange) ([]byte, error) {
	s.mu.Lock()
	tools := s.tools
	s.mu.Unlock()
	c := &Call{Name: ex.p.Name, Args: ex.p.Arguments, Params: ex.msg.Params, Meta: ex.p.Meta, Header: ex.header, Modern: ex.modern, Version: ex.version, s: s, ex: ex}
	if c.Args == nil {
		c.Args = []byte(`{}`)
	}
	var handle Handler
	for _, t := range tools {
		if jsonx.GetText(t.Def, "name") == c.Name {
			handle = t.Handle
		}
	}
	if handle == nil && s.toolDef(c.Name) != nil {
		handle = echo // one that only lists know, such as those of manytools
	}
	if handle == nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "unknown tool %q", c.Name)
	}
	result, err := handle(ctx, c)
	var need *needInput
	if errors.As(err, &need) {
		return c.inputRequired(need), nil
	}
	var rpc *mcp.Error
	if err == nil || errors.As(err, &rpc) {
		return result, err
	}
	return jsonx.Set(TextResult(err.Error()), "isError", []byte("true")), nil
}

// TextResult returns a result with one text.
func TextResult(text string) []byte {
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, jsonx.Quote(text))
}

// Progress tells the client how far the call is. Without a progress token nothing
// is sent.
func (c *Call) Progress(progress, total int, message string) {
	token, ok := jsonx.Get(c.Meta, mcp.MetaProgress)
	if !ok {
		return
	}
	_ = c.ex.out.send(progressFrame(token, progress, total, message), false)
}

func progressFrame(token []byte, progress, total int, message string) frame {
	return notification(mcp.MethodNotifyProgress, fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"total":%d,"message":%s}`, token, progress, total, jsonx.Quote(message)))
}

// Log sends a log notification; in the stateless protocol only to a client that asked.
func (c *Call) Log(level, text string) {
	if _, asked := jsonx.Get(c.Meta, mcp.MetaLogLevel); c.Modern && !asked {
		return
	}
	_ = c.ex.out.send(notification(mcp.MethodNotifyMessage, fmt.Appendf(nil, `{"level":%s,"logger":"fake","data":%s}`, jsonx.Quote(level), jsonx.Quote(text))), false)
}

// Note enters an event of the tool into the ledger.
func (c *Call) Note(event, detail string) {
	c.s.note(c.ex.sess, Entry{Event: event, Method: mcp.MethodToolsCall, Name: c.Name, ID: c.ex.msg.ID.JSON(), Detail: detail})
}

// Exit ends the process, or else the connection.
func (c *Call) Exit(why string) { c.s.exit(c.ex.sess, why) }

// Ask sends a server request to the client: a request in the legacy protocol, an
// input_required result in the stateless one. There it returns an error that the
// handler must return; when the client retries, Ask returns its answer.
func (c *Call) Ask(ctx context.Context, key, method string, params []byte) ([]byte, error) {
	if err := c.checkCapability(method); err != nil {
		return nil, err
	}
	if !c.Modern {
		return c.ex.sess.ask(ctx, c.ex.out, method, params)
	}
	if answer, ok := jsonx.Path(c.Params, "inputResponses", key); ok {
		if got := jsonx.GetText(c.Params, "requestState"); got != c.state() {
			return nil, mcp.Errorf(mcp.CodeInvalidParams, "requestState %q is not the one that was given out", got)
		}
		return answer, nil
	}
	return nil, &needInput{key: key, method: method, params: params}
}

func (c *Call) checkCapability(method string) error {
	needed := map[string]string{mcp.MethodElicit: "elicitation", mcp.MethodSample: "sampling", mcp.MethodRoots: "roots"}[method]
	if _, ok := jsonx.Get(c.ex.caps, needed); ok {
		return nil
	}
	if !c.Modern {
		return fmt.Errorf("the client does not support %s", needed)
	}
	err := mcp.Errorf(mcp.CodeMissingCapability, "the client does not support %s", needed)
	err.Data = fmt.Appendf(nil, `{"requiredCapabilities":{%q:{}}}`, needed)
	return err
}

// needInput is a question to a modern client.
type needInput struct {
	key, method string
	params      []byte
}

func (n *needInput) Error() string { return "input required: " + n.method }

func (c *Call) inputRequired(n *needInput) []byte {
	c.Note(EventAsked, n.key)
	request := fmt.Appendf(nil, `{"method":%s,"params":%s}`, jsonx.Quote(n.method), n.params)
	return jsonx.Apply([]byte(`{"resultType":"input_required"}`),
		jsonx.Edit{Key: "inputRequests", Value: jsonx.Set(nil, n.key, request)},
		jsonx.Edit{Key: "requestState", Value: jsonx.Quote(c.state())})
}

// state is what the client must echo byte for byte: bound to the call without
// memory on this side, and full of what careless code would change.
func (c *Call) state() string {
	sum := sha256.Sum256(append([]byte(c.Name), c.Args...))
	return hex.EncodeToString(sum[:8]) + ` "é\/+=<&> 😀`
}
