package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/host/internal/deadline"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/suggest"
	"github.com/usher-mcp/usher/mcp"
)

// Request is one request to a server.
type Request struct {
	mcp.Request
	// Answer answers server requests (elicitation, sampling, roots) that the server
	// makes before it responds, in either protocol. Nil leaves them to the caller:
	// those of the stateless protocol come back as a result, those of the legacy
	// protocol go to OnRequest.
	Answer mcp.Responder
	// Repeatable says that the request may run twice. Set it from knowledge of
	// your own; the annotations of a trusted server are looked up by the Host.
	Repeatable bool
	// Timeout replaces the server's timeouts.call. 0: it does not.
	Timeout time.Duration
}

// Do sends a request under supervision and returns the raw result. It connects if
// need be. An answer of the server, error or not, never counts against it; a
// *mcp.Error is found with errors.As. After a failure of the connection the
// request is repeated once where that is safe; otherwise the error is
// [ErrOutcomeUnknown].
func (h *Host) Do(ctx context.Context, k Key, req Request) ([]byte, error) {
	return h.Line(k).Do(ctx, req)
}

func (u *unit) request(ctx context.Context, req Request) (result []byte, err error) {
	op := operation{
		name: "call", timeout: orDefault(req.Timeout, u.timeout(req.Method)),
		repeatable: func() bool { return req.Repeatable || u.repeatable(req) },
	}
	op.do = func(ctx context.Context, p *deadline.Pausable, l *live) (err error) {
		result, err = u.send(ctx, p, l, req)
		return err
	}
	err = u.run(ctx, op)
	if err == nil {
		return result, nil
	}
	if req.Method == mcp.MethodToolsCall {
		err = u.unknownTool(req, err)
	}
	return nil, err
}

// timeout is how long the server may take to answer a method.
func (u *unit) timeout(method string) time.Duration {
	switch method {
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList:
		return u.srv.Timeouts.List
	}
	return u.srv.Timeouts.Call
}

// send puts the request on the wire. A tool whose header annotations were not
// known is refused before it runs, so learning them and asking again is safe.
func (u *unit) send(ctx context.Context, p *deadline.Pausable, l *live, req Request) ([]byte, error) {
	if req.Answer != nil {
		return l.conn.Call(ctx, req.Request, p.WhileAnswering(req.Answer))
	}
	r := req.Request
	r.OnRequest = p.WhileAnswering(r.OnRequest)
	result, err := l.conn.Do(ctx, r)
	var answer *mcp.Error
	if req.Method != mcp.MethodToolsCall || !errors.As(err, &answer) || answer.Code != mcp.CodeHeaderMismatch || !mcp.Stateless(l.conn.Version()) {
		return result, err
	}
	seen := u.catalog.changeCount(mcp.MethodToolsList)
	list, listErr := l.conn.List(ctx, mcp.MethodToolsList)
	if listErr != nil {
		return nil, err
	}
	u.keep(ctx, mcp.MethodToolsList, list, l, seen)
	return l.conn.Do(ctx, r)
}

// repeatable reports whether running a request twice does no harm: the protocol
// says so of everything that only reads, and a server that is trusted may say so
// of a tool.
func (u *unit) repeatable(req Request) bool {
	switch req.Method {
	case mcp.MethodPing, mcp.MethodDiscover, mcp.MethodComplete,
		mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodPromptsGet,
		mcp.MethodResourcesList, mcp.MethodTemplatesList, mcp.MethodResourcesRead:
		return true
	case mcp.MethodToolsCall:
	default:
		return false
	}
	if !u.srv.Trust {
		return false
	}
	name, ok := toolOf(req)
	if !ok {
		return false
	}
	def, _ := u.catalog.tool(name)
	return annotated(def, "readOnlyHint") || annotated(def, "idempotentHint")
}

// toolOf is the name of the tool that a request calls.
func toolOf(req Request) (string, bool) {
	p, err := mcp.ReadParams(req.Params)
	return p.Name, err == nil
}

func annotated(def []byte, hint string) bool {
	v, _ := jsonx.Path(def, "annotations", hint)
	return string(v) == "true"
}

// unknownTool adds the names that may have been meant when the server says that a
// tool does not exist and its list agrees.
func (u *unit) unknownTool(req Request, err error) error {
	var answer *mcp.Error
	if !errors.As(err, &answer) || answer.Code != mcp.CodeInvalidParams && answer.Code != mcp.CodeMethodNotFound {
		return err
	}
	name, ok := toolOf(req)
	if def, known := u.catalog.tool(name); !ok || !known || def != nil {
		return err
	}
	return &Error{
		Server: u.key.Server, Advice: suggest.Question(name, u.catalog.toolNames()),
		Err: &unknownError{what: ErrUnknownTool, text: fmt.Sprintf("%s has no tool named %q", u.key.Server, name), err: err},
	}
}
