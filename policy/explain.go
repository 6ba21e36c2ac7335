package policy

import (
	"context"
	"errors"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
)

// Kind says what an error means to an agent.
type Kind string

// The kinds of problems.
const (
	KindOther         Kind = ""               // none of the others
	KindAnswer        Kind = "answer"         // the server's own answer, a *mcp.Error
	KindLogin         Kind = "needs_login"    // a person has to log in
	KindDenied        Kind = "denied"         // a rule forbids it
	KindBudget        Kind = "budget"         // too many calls
	KindChanged       Kind = "schema_changed" // the tool is not what it was
	KindUnknownServer Kind = "unknown_server"
	KindUnknownTool   Kind = "unknown_tool"
	KindUnsupported   Kind = "unsupported"     // not offered to this caller
	KindUnavailable   Kind = "unavailable"     // down, ejected, circuit open, too busy
	KindUnknown       Kind = "outcome_unknown" // it may have run
	KindOff           Kind = "off"             // disabled, or held back until approved
	KindCancelled     Kind = "cancelled"       // the caller left
)

// Problem is an error in words for an agent. It never says how to change the policy:
// that is for the person, who reads the error itself and its Hint.
type Problem struct {
	Kind   Kind
	Server string // "name" or "name@account", where one is concerned
	// Text is what went wrong and Next the next step; both are one line.
	Text, Next string
	// RetryAfter is how long to wait, 0 when that is not known.
	RetryAfter time.Duration
}

// hostKinds says what errors of the host mean, the first that fits.
var hostKinds = []struct {
	is   error
	kind Kind
}{
	{host.ErrNeedsLogin, KindLogin},
	{host.ErrUnknownServer, KindUnknownServer},
	{host.ErrUnknownTool, KindUnknownTool},
	{host.ErrOutcomeUnknown, KindUnknown},
	{host.ErrHeldBack, KindOff},
	{host.ErrDisabled, KindOff},
	{host.ErrCircuitOpen, KindUnavailable},
	{host.ErrEjected, KindUnavailable},
	{host.ErrBusy, KindUnavailable},
	{host.ErrTransport, KindUnavailable},
	{context.DeadlineExceeded, KindUnavailable},
	{context.Canceled, KindCancelled},
}

// Explain says what an error of the gate or the host means to an agent.
func Explain(err error) Problem {
	var denied *DeniedError
	var budget *BudgetError
	var changed *ChangedError
	var unknown *UnknownError
	switch {
	case errors.As(err, &denied):
		return Problem{Kind: KindDenied, Server: scopeName(denied.Server, denied.Account), Text: denied.neutral()}
	case errors.As(err, &budget):
		return Problem{Kind: KindBudget, Server: budget.Server, Text: budget.Error()}
	case errors.As(err, &changed):
		return Problem{Kind: KindChanged, Server: scopeName(changed.Server, changed.Account), Text: changed.neutral()}
	case errors.As(err, &unknown):
		return explainUnknown(unknown)
	}
	return explainHost(err)
}

func explainUnknown(e *UnknownError) Problem {
	p := Problem{Kind: KindUnknownServer, Server: scopeName(e.Server, e.Account), Text: e.Error()}
	switch {
	case e.part:
		p.Kind = KindUnsupported
	case e.Tool != "":
		p.Kind = KindUnknownTool
	}
	return p
}

func explainHost(err error) Problem {
	p := Problem{Text: err.Error()}
	for _, k := range hostKinds {
		if errors.Is(err, k.is) {
			p.Kind = k.kind
			break
		}
	}
	var e *host.Error
	var answer *mcp.Error
	if errors.As(err, &e) {
		p.Server, p.RetryAfter = e.Server, e.RetryAfter
		p.Text, p.Next = e.Error(), nextStep(p.Kind, e)
	}
	switch {
	case errors.Is(err, host.ErrHeldBack):
		p.Text = config.Visible(p.Server) + " is held back until a person approves it"
	case p.Kind == KindOther && errors.As(err, &answer):
		p.Kind = KindAnswer
	}
	return p
}

// nextStep is what an agent may be told to do about a failure of a server. Commands
// that loosen something, or show what the operator keeps, are left to the person.
func nextStep(kind Kind, e *host.Error) string {
	switch kind {
	case KindLogin, KindUnknown, KindUnknownServer, KindUnknownTool:
		return e.Hint()
	}
	return ""
}

// neutral is the refusal for an agent: no rule, no file, no command.
func (e *DeniedError) neutral() string {
	return targetName(e.Server, e.Account, e.Tool) + " is denied by policy; a person can change that"
}

// neutral is the refusal for an agent.
func (e *ChangedError) neutral() string {
	return targetName(e.Server, e.Account, e.Tool) + " is blocked: its definition has changed since it was approved; a person has to review it"
}
