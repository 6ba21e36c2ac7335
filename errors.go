package usher

import (
	"errors"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
)

// Kind says what an error means. The values are stable.
type Kind string

// The kinds of errors.
const (
	KindOther          Kind = ""                // none of the others
	KindNeedsLogin     Kind = "needs_login"     // the user has to log in
	KindDenied         Kind = "denied"          // a rule or the hook forbids it
	KindBudget         Kind = "budget"          // too many calls
	KindSchemaChanged  Kind = "schema_changed"  // the tool differs from its pin
	KindUnknownServer  Kind = "unknown_server"  // no such server or account
	KindUnknownTool    Kind = "unknown_tool"    // the server has no such tool
	KindUnsupported    Kind = "unsupported"     // the server does not offer it
	KindUnavailable    Kind = "unavailable"     // unreachable, circuit open, ejected, busy, or too slow
	KindOutcomeUnknown Kind = "outcome_unknown" // it was sent, and may have run
	KindOff            Kind = "off"             // disabled, or not approved yet
	KindCancelled      Kind = "cancelled"       // the caller's context ended
	KindAnswer         Kind = "answer"          // the server answered with a JSON-RPC error
	KindInvalid        Kind = "invalid"         // the server definition is malformed
	KindExists         Kind = "exists"          // the server's name is in use
	KindLoginFailed    Kind = "login_failed"    // the user or the authorization server refused, or the time is up
	KindClosed         Kind = "closed"          // the host is closed
)

// Info is an error as data.
type Info struct {
	Kind   Kind
	Server string // "name" or "name@label"; empty when none is concerned
	// Text is what went wrong, in one line.
	Text string
	// Hint is what the user or the program can do about it; empty when nothing is known.
	Hint string
	// RetryAfter is how long to wait before the next try; 0 when that is not known.
	RetryAfter time.Duration
	// Code and Data are those of the server's JSON-RPC error, if it sent one; Data is
	// raw JSON.
	Code int64
	Data []byte
}

// ownKinds are the errors that concern an embedding program and no client.
var ownKinds = []struct {
	is   error
	kind Kind
}{
	{host.ErrInvalid, KindInvalid},
	{host.ErrExists, KindExists},
	{host.ErrClosed, KindClosed},
	{auth.ErrClosed, KindClosed},
	{auth.ErrNeedsLogin, KindNeedsLogin},
	{auth.ErrDenied, KindLoginFailed},
	{auth.ErrExpired, KindLoginFailed},
	{auth.ErrUnavailable, KindUnavailable},
}

// hints say what to do about an error of a kind.
var hints = map[Kind]string{
	KindNeedsLogin:     "log in to the server",
	KindDenied:         "change the rule or the hook that denies it",
	KindBudget:         "wait until the budget resets, or raise it",
	KindSchemaChanged:  "compare the tool with its pin, and accept it if the change is wanted",
	KindUnavailable:    "try again later, or reload the server",
	KindOutcomeUnknown: "find out whether it ran before trying again",
	KindOff:            "enable or approve the server",
	KindExists:         "replace the server, or remove it first",
	KindLoginFailed:    "begin the login again",
}

// ErrorInfo returns what is known about an error of this package, of a Host or of a
// Login. It returns false for nil and for errors of another origin.
func ErrorInfo(err error) (Info, bool) {
	if err == nil {
		return Info{}, false
	}
	p := policy.Explain(err)
	info := Info{Kind: Kind(p.Kind), Server: p.Server, Text: p.Text, RetryAfter: p.RetryAfter}
	for _, k := range ownKinds {
		if info.Kind == KindOther && errors.Is(err, k.is) {
			info.Kind = k.kind
		}
	}
	var answer *mcp.Error
	if errors.As(err, &answer) {
		info.Code, info.Data = answer.Code, answer.Data
	}
	info.Hint = hints[info.Kind]
	switch info.Kind {
	case KindDenied:
		info.Text = err.Error() // it names the rule, or the reason of the hook
	case KindBudget:
		info.RetryAfter = refillAfter(err)
	case KindUnknownServer, KindUnknownTool:
		if strings.HasPrefix(p.Next, "did you mean") {
			info.Hint = p.Next
		}
	}
	return info, info.Kind != KindOther || info.Server != "" || answer != nil
}

// refillAfter is how long it takes until a budget refills.
func refillAfter(err error) time.Duration {
	var spent *policy.BudgetError
	if !errors.As(err, &spent) || spent.Refill.IsZero() {
		return 0
	}
	return max(time.Until(spent.Refill), 0)
}
