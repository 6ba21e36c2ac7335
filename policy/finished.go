package policy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// How a call ended.
const (
	OutcomeOK        = "ok"
	OutcomeCached    = "cached"
	OutcomeToolError = "tool_error" // the tool itself says that it failed
	OutcomeDenied    = "denied"
	OutcomeBudget    = "over_budget"
	OutcomeChanged   = "changed"
	OutcomeLogin     = "needs_login"
	OutcomeUnknown   = "unknown" // it may have run
	OutcomeCancelled = "cancelled"
	OutcomeError     = "error"
)

// Finished is a completed tool call, or a completed use of a prompt or resource: for
// events, metrics and the audit log.
type Finished struct {
	Caller  Caller
	Key     Key
	Method  string
	Tool    string // or the name of the prompt, or the URI of the resource, credentials masked
	Outcome string
	Began   time.Time
	Took    time.Duration
	Bytes   int   // of the answer
	Err     error // nil when there is an answer

	arguments, params []byte
}

func finished(c *Call, took time.Duration, res Result, err error) Finished {
	return Finished{
		Caller: c.Caller, Key: c.Key, Method: mcp.MethodToolsCall, Tool: c.Tool, Outcome: outcome(res, err), Began: time.Now().Add(-took), Took: took,
		Bytes: len(res.Raw), Err: err, arguments: c.Arguments, params: c.Params,
	}
}

// used is finished for a request that is no tool call.
func used(c Caller, k Key, req Request, took time.Duration, res Result, err error) Finished {
	p, _ := mcp.ReadParams(req.Params) // what cannot be read was refused
	name, _ := p.NameFor(req.Method)
	if req.Method == mcp.MethodResourcesRead {
		name = template.MaskURI(name)
	}
	return Finished{
		Caller: c, Key: k, Method: req.Method, Tool: name, Outcome: outcome(res, err), Began: time.Now().Add(-took), Took: took,
		Bytes: len(res.Raw), Err: err, params: req.Params,
	}
}

// refused records that a request was refused before it reached a server.
func (g *Gate) refused(c *Caller, k Key, method, name string, err error) {
	if g.opt.OnCall != nil && isRefusal(err) {
		g.opt.OnCall(Finished{Caller: *c, Key: k, Method: method, Tool: name, Outcome: outcome(Result{}, err), Began: time.Now(), Err: err})
	}
}

// isRefusal reports whether the gate refused a request, so that it is recorded
// whatever its method. Names that nobody uses are not refusals.
func isRefusal(err error) bool {
	return isHidden(err) || errors.Is(err, ErrDenied) || errors.Is(err, ErrBudget) || errors.Is(err, ErrSchemaChanged)
}

func isHidden(err error) bool {
	var unknown *UnknownError
	return errors.As(err, &unknown) && unknown.hidden
}

func outcome(res Result, err error) string {
	switch {
	case err != nil && isHidden(err), errors.Is(err, ErrDenied):
		return OutcomeDenied
	case errors.Is(err, ErrBudget):
		return OutcomeBudget
	case errors.Is(err, ErrSchemaChanged):
		return OutcomeChanged
	case errors.Is(err, host.ErrNeedsLogin):
		return OutcomeLogin
	case errors.Is(err, host.ErrOutcomeUnknown):
		return OutcomeUnknown
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled
	case err != nil:
		return OutcomeError
	case res.Cached:
		return OutcomeCached
	case isToolError(res.Raw):
		return OutcomeToolError
	}
	return OutcomeOK
}

func isToolError(result []byte) bool {
	const short = 1 << 10 // below, looking for the name is quicker than walking
	if len(result) < short && !bytes.Contains(result, []byte(`"isError"`)) {
		return false
	}
	v, ok := jsonx.Get(result, "isError")
	return ok && string(v) == "true"
}

// ArgumentsSum is the SHA-256 of the arguments' bytes, zero when there were none. It
// is computed here, so that who does not ask does not pay. Call it before OnCall
// returns: the bytes are the caller's.
func (f Finished) ArgumentsSum() [sha256.Size]byte {
	args := f.arguments
	if f.params != nil {
		args, _ = jsonx.Get(f.params, "arguments")
	}
	if args == nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(args)
}

// Bounds of what Shape looks at and says.
const (
	maxShaped = 8 << 10
	maxShape  = 160
)

// Shape appends the names and kinds of the arguments to dst, such as
// "query: string(12), limit: number", and no value. What is too large to look at
// while somebody waits is only said to be so. Like ArgumentsHash it is for OnCall.
func (f Finished) Shape(dst []byte) []byte {
	args := f.arguments
	if f.params != nil {
		if len(f.params) > maxShaped {
			return fmt.Appendf(dst, "%d bytes", len(f.params))
		}
		args, _ = jsonx.Get(f.params, "arguments")
	}
	if len(args) > maxShaped {
		return fmt.Appendf(dst, "%d bytes", len(args))
	}
	for m := jsonx.Object(args); m.Next(); {
		if len(dst) > maxShape {
			return append(dst, ", …"...)
		}
		if len(dst) > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, m.Key[:min(len(m.Key), maxShape/4)]...)
		dst = append(dst, ": "...)
		dst = append(dst, jsonx.TypeOf(m.Value)...)
		if m.Value[0] == '"' {
			dst = append(dst, '(')
			dst = strconv.AppendInt(dst, int64(utf8.RuneCount(m.Value)-2), 10)
			dst = append(dst, ')')
		}
	}
	return dst
}

// Event is the call as an event.
func (f Finished) Event() event.CallFinished {
	h := event.Header{At: f.Began.Add(f.Took), Server: f.Key.Server, Account: f.Key.Account}
	if f.Key.Principal != host.Local {
		h.Principal = f.Key.Principal
	}
	return event.CallFinished{Header: h, Method: f.Method, Tool: f.Tool, Took: f.Took, Outcome: f.Outcome, Bytes: int64(f.Bytes)}
}
