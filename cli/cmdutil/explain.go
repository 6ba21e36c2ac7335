package cmdutil

import (
	"context"
	"errors"
	"strings"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/advice"
	"github.com/usher-mcp/usher/policy"
)

// PlainCause is the message of an error without the server's name, which stands
// beside it, and without the hint.
func PlainCause(server string, err error) string {
	var e *host.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	return strings.TrimPrefix(err.Error(), server+": ")
}

// NextStep is the hint of an error.
func NextStep(err error, otherwise string) string {
	var login *host.NeedsLoginError
	var e *host.Error
	switch {
	case errors.As(err, &login) && login.Command != "":
		return login.Command
	case errors.As(err, &e) && advice.NextStep(e) != "":
		return strings.TrimPrefix(strings.TrimPrefix(advice.NextStep(e), "run: "), "see: ")
	}
	return otherwise
}

// Explain says what happened, and what a person can do about it. An agent learns
// what was refused, not how to undo it.
func (f *Factory) Explain(err error) (what, next string) {
	if f.Agent() != "" {
		if what := NeutralText(err); what != "" {
			return what, ByPerson
		}
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted", HintOf(err)
	}
	return advice.Message(err), HintOf(err)
}

// ExplainLine is Explain on one line.
func ExplainLine(f *Factory, err error) string {
	what, next := f.Explain(err)
	if next == ByPerson {
		return what + "; " + next
	}
	return what
}

// NeutralText is the text of a refusal without rules, paths and commands; empty when
// err is not a refusal that a person could lift.
func NeutralText(err error) string {
	var denied *policy.DeniedError
	var changed *policy.ChangedError
	var failed *host.Error
	switch {
	case errors.As(err, &denied):
		return toolName(denied.Server, denied.Account, denied.Tool) + " is denied by policy"
	case errors.As(err, &changed):
		return toolName(changed.Server, changed.Account, changed.Tool) + " is blocked: its definition changed since it was pinned"
	case errors.Is(err, policy.ErrDenied), errors.Is(err, policy.ErrSchemaChanged):
		return "denied by policy"
	case errors.Is(err, policy.ErrBudget):
		return err.Error()
	case errors.Is(err, host.ErrHeldBack) && errors.As(err, &failed) && failed.Server != "":
		return failed.Server + " is held back: a project file defines it and nobody has approved it"
	case errors.Is(err, host.ErrHeldBack):
		return "held back: a project file defines it and nobody has approved it"
	case errors.Is(err, ErrNoTerminal):
		return ErrNoTerminal.Error()
	}
	return ""
}

// toolName is server/tool, or server@account/tool.
func toolName(server, account, tool string) string {
	if account != "" {
		server += "@" + account
	}
	return strings.TrimSuffix(server+"/"+tool, "/")
}

// Flatten takes joined errors apart.
func Flatten(err error) []error {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range many.Unwrap() {
		out = append(out, Flatten(e)...)
	}
	return out
}
