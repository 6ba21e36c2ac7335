package policy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
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

// Finished is a call that has ended, for events and the audit trail.
type Finished struct {
	Key     Key
	Tool    string
	Outcome string
	Began   time.Time
	Took    time.Duration
	Bytes   int   // of the answer
	Err     error // nil when there is an answer

	arguments, params []byte
}

func finished(c *Call, took time.Duration, res Result, err error) Finished {
	return Finished{
		Key: c.Key, Tool: c.Tool, Outcome: outcome(res, err), Began: time.Now().Add(-took), Took: took,
		Bytes: len(res.Raw), Err: err, arguments: c.Arguments, params: c.Params,
	}
}

func outcome(res Result, err error) string {
	switch {
	case errors.Is(err, ErrDenied):
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
	if !bytes.Contains(result, []byte(`"isError"`)) {
		return false
	}
	v, ok := jsonx.Get(result, "isError")
	return ok && string(v) == "true"
}

// ArgumentsHash is the SHA-256 of the arguments' bytes in hex, "" when there were
// none. It is computed here, so that who does not ask does not pay. Call it before
// OnCall returns: the bytes are the caller's.
func (f Finished) ArgumentsHash() string {
	args := f.arguments
	if f.params != nil {
		args, _ = jsonx.Get(f.params, "arguments")
	}
	if args == nil {
		return ""
	}
	sum := sha256.Sum256(args)
	return hex.EncodeToString(sum[:])
}

// Event is the call as an event.
func (f Finished) Event() event.CallFinished {
	h := event.Header{At: f.Began.Add(f.Took), Server: f.Key.Server, Account: f.Key.Account}
	if f.Key.Principal != host.Local {
		h.Principal = f.Key.Principal
	}
	return event.CallFinished{Header: h, Method: wire.MethodToolsCall, Tool: f.Tool, Took: f.Took, Outcome: f.Outcome, Bytes: int64(f.Bytes)}
}
