package host

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/suggest"
	"github.com/usher-mcp/usher/upstream"
)

// Errors that callers branch on. Those that reach a user come wrapped in an *Error
// that names the server and the next step.
var (
	// ErrUnknownServer: no server of that name is registered.
	ErrUnknownServer = errors.New("unknown server")
	// ErrUnknownTool: the server said so, and its list does not have the tool.
	ErrUnknownTool = errors.New("unknown tool")
	// ErrExists: a server of that name is registered already.
	ErrExists = errors.New("a server of that name is already configured")
	// ErrInvalid: the definition of a server lacks something or is malformed.
	ErrInvalid = errors.New("invalid definition")
	// ErrCircuitOpen: the server failed too often; nothing was sent.
	ErrCircuitOpen = errors.New("the circuit is open")
	// ErrEjected: the server's restart budget is spent; nothing was sent.
	ErrEjected = errors.New("ejected")
	// ErrOutcomeUnknown: the request was sent and the answer is lost, so it may
	// have been carried out. It was not repeated.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
	// ErrNeedsLogin: a person has to log in, see [NeedsLoginError].
	ErrNeedsLogin = errors.New("login required")
	// ErrHeldBack: the definition has not been approved.
	ErrHeldBack = errors.New("held back until approved")
	// ErrDisabled: the server is switched off, or its definition is broken.
	ErrDisabled = errors.New("disabled")
	// ErrBusy: every place for a child process is taken by a server in use.
	ErrBusy = errors.New("too many servers are in use at once")
	// ErrTransport: the connection to the server failed.
	ErrTransport = upstream.ErrTransport
	// ErrClosed: the host was closed.
	ErrClosed = errors.New("the host is closed")
)

// Action is what a person can do about a failure. Programs say it in words or commands
// of their own.
type Action string

// The actions.
const (
	ActionLogin    Action = "login"    // log in, see [NeedsLoginError]
	ActionReload   Action = "reload"   // reload the server, see [Host.Reload]
	ActionApprove  Action = "approve"  // approve its definition
	ActionLogs     Action = "logs"     // read what the server wrote to standard error
	ActionDiagnose Action = "diagnose" // find out what is wrong with it
)

// Error is what every operation of a Host returns when it fails, except that an
// answer of the server (*mcp.Error) and the end of the caller's own context are
// found in it with errors.As and errors.Is.
type Error struct {
	Op     string // what was being done: "call", "list", "connect", …; "" when Err says it all
	Server string
	Err    error
	// Advice is the next step in words; Action the next step that a program may offer,
	// beside Advice or instead of it. Both may be empty.
	Advice string
	Action Action
	// RetryAfter is how long to wait before the next try, 0 when that is not
	// known or makes no difference.
	RetryAfter time.Duration

	unreached bool // see Unreached
}

// Unreached reports whether err says that there is no connection to the server: it
// could not be made, it was not tried, or it broke. Another request would have to
// connect first.
func Unreached(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.unreached
}

func (e *Error) Error() string {
	msg := strings.TrimPrefix(e.Err.Error(), e.Server+": ")
	if e.Op != "" {
		msg = e.Op + " " + e.Server + ": " + msg
	}
	return msg
}

// Hint is the next step for a person.
func (e *Error) Hint() string {
	var need *NeedsLoginError
	switch {
	case e.Advice != "":
		return e.Advice
	case e.Action == ActionLogin && errors.As(e.Err, &need) && need.Command != "":
		return "run: " + need.Command
	}
	return actionHints[e.Action]
}

var actionHints = map[Action]string{
	ActionLogin: "log in", ActionReload: "reload the server", ActionApprove: "approve the server",
	ActionLogs: "read the log of the server", ActionDiagnose: "diagnose the server",
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NeedsLoginError says why a person has to log in and with which command. An
// [Authorizer] returns it.
type NeedsLoginError struct {
	Reason  string
	Command string // how to do that, as the program around a Host says it; may be empty
}

func (e *NeedsLoginError) Error() string {
	if e.Reason == "" {
		return ErrNeedsLogin.Error()
	}
	return ErrNeedsLogin.Error() + ": " + e.Reason
}

// Is makes errors.Is(err, ErrNeedsLogin) hold.
func (e *NeedsLoginError) Is(target error) bool { return target == ErrNeedsLogin }

// unknownServer explains that there is no such server and which may be meant.
func unknownServer(name string, known []string) error {
	return &Error{Server: name, Err: &unknownError{what: ErrUnknownServer, text: fmt.Sprintf("no server named %q is configured", name)}, Advice: suggest.Question(name, known)}
}

// unknownError is a sentinel in words of its own.
type unknownError struct {
	what error
	text string
	err  error // the server's answer, nil when it was not asked
}

func (e *unknownError) Error() string { return e.text }

func (e *unknownError) Is(target error) bool { return target == e.what }

func (e *unknownError) Unwrap() error { return e.err }
