package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/policy"
)

// explain says what happened, and what a person can do about it. An agent learns
// what was refused, not how to undo it.
func (a *factory) explain(err error) (what, next string) {
	if a.agent() != "" {
		if what := neutralText(err); what != "" {
			return what, byPerson
		}
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted", hintOf(err)
	}
	return app.Message(err), hintOf(err)
}

// explained is explain on one line.
func (a *factory) explained(err error) string {
	what, next := a.explain(err)
	if next == byPerson {
		return what + "; " + next
	}
	return what
}

// neutralText is the text of a refusal without rules, paths and commands; empty when
// err is not a refusal that a person could lift.
func neutralText(err error) string {
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
	case errors.Is(err, errNoTerminal):
		return errNoTerminal.Error()
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
