package host

import (
	"context"
	"errors"
	"os/exec"

	"github.com/usher-mcp/usher/host/internal/deadline"
	"github.com/usher-mcp/usher/host/internal/supervise"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// kind is what an outcome means for supervision.
type kind int

const (
	answered  kind = iota // the server answered, perhaps with an error of its own
	cancelled             // the caller left
	timedOut              // one of our deadlines passed
	broken                // the connection failed
	cut                   // we closed the connection under the request
	sick                  // the server cannot do its work: HTTP 5xx, no handshake, gibberish
	limited               // HTTP 429
	refused               // a login is needed
	odd                   // the server refused the request in a way of its own
	local                 // nothing to do with the server: held back, no place, …
)

// bad reports whether the outcome speaks against the server.
func (k kind) bad() bool { return k == timedOut || k == broken || k == sick }

// leavesDoubt reports whether a request that was sent may have been carried out
// although it failed.
func (k kind) leavesDoubt() bool {
	return k == timedOut || k == broken || k == cut || k == sick || k == odd
}

func (k kind) verdict() supervise.Verdict {
	switch {
	case k == answered:
		return supervise.Success
	case k.bad():
		return supervise.Failure
	}
	return supervise.Neither
}

// dialError is a failed dial, shared by all who waited for it.
type dialError struct {
	fault
	err  error
	kind kind
}

func (e *dialError) Error() string { return e.err.Error() }

func (e *dialError) Unwrap() error { return e.err }

// dialKind classifies the error of a dial. Whatever a server does instead of a
// handshake speaks against it.
func dialKind(err error) kind {
	var ours *deadline.TimeoutError
	var status *upstream.StatusError
	switch {
	case errors.As(err, &ours):
		return broken // the handshake took too long
	case errors.Is(err, ErrHeldBack):
		return local
	case errors.Is(err, ErrNeedsLogin), errors.Is(err, upstream.ErrUnauthorized):
		return refused
	case errors.Is(err, upstream.ErrRateLimited):
		return limited
	case errors.As(err, &status) && status.Status < 500:
		return odd // it is there, but not at this address
	case errors.Is(err, upstream.ErrTransport):
		return broken
	case errors.Is(err, upstream.ErrProtocol), isAnswer(err):
		return sick
	}
	return local
}

// costsRestart reports whether a failed dial started something that ended: a
// command that does not exist and a host that cannot be reached cost nothing.
func costsRestart(k kind, err error) bool {
	var te *upstream.TransportError
	if errors.As(err, &te) && (te.Op == "start" || te.Op == "connect") {
		return false
	}
	return k.bad()
}

// callKind classifies the error of a request on a live connection. ctx is the
// caller's, call the one with our deadline on it.
func callKind(ctx, call context.Context, err error) kind {
	if err == nil {
		return answered
	}
	var ours *deadline.TimeoutError
	var status *upstream.StatusError
	switch {
	case isAnswer(err), errors.Is(err, upstream.ErrTooLarge):
		return answered
	case ctx.Err() != nil:
		return cancelled
	case errors.As(context.Cause(call), &ours):
		return timedOut
	case errors.Is(err, ErrNeedsLogin), errors.Is(err, upstream.ErrUnauthorized):
		return refused
	case errors.Is(err, upstream.ErrRateLimited):
		return limited
	case errors.Is(err, upstream.ErrTransport):
		return broken
	case errors.Is(err, upstream.ErrClosed):
		return cut
	case errors.As(err, &status):
		if status.Status >= 500 {
			return sick
		}
		return odd
	case errors.Is(err, upstream.ErrProtocol):
		return sick // an answer nobody can read is none
	}
	return odd
}

// isAnswer reports whether err is a JSON-RPC error of the server.
func isAnswer(err error) bool {
	var answer *mcp.Error
	return errors.As(err, &answer)
}

// maybeSent reports whether a request that failed may have reached the server.
// Unlike upstream it trusts no closed connection: the request may have been under
// way when we closed it. An HTTP status below 500 is a refusal.
func maybeSent(err error) bool {
	var status *upstream.StatusError
	if errors.As(err, &status) && status.Status >= 400 && status.Status < 500 {
		return false
	}
	return errors.Is(err, upstream.ErrClosed) || upstream.MaybeSent(err)
}

// hopeless reports whether trying once more cannot help.
func hopeless(err error) bool {
	return errors.Is(err, exec.ErrNotFound)
}
