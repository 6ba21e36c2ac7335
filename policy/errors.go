package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/policy/budget"
)

// What callers branch on, with errors.Is. All three are refusals of the gate:
// nothing was sent to the server.
var (
	// ErrDenied: a rule or the program's own policy forbids it, see [DeniedError].
	ErrDenied = errors.New("denied")
	// ErrBudget: the calls that were granted are used up, see [BudgetError].
	ErrBudget = budget.ErrSpent
	// ErrSchemaChanged: the tool is not what it was, see [ChangedError].
	ErrSchemaChanged = errors.New("tool changed")
)

// DeniedError says what was refused and by which rule. It is [ErrDenied].
type DeniedError struct {
	Server  string
	Account string
	Tool    string // empty when the server as a whole is concerned
	// Rule is the rule as a person would write it, `deny github/delete_*`. It is
	// empty when no rule forbids it: Reason says why then.
	Rule   string
	Origin config.Origin // where the rule stands; zero when unknown
	Reason string
}

func (e *DeniedError) Error() string {
	target := targetName(e.Server, e.Account, e.Tool)
	if e.Rule == "" {
		return fmt.Sprintf("%s is denied: %s%s", target, e.Reason, whereIs(e.Origin))
	}
	return fmt.Sprintf("%s is denied by rule %q%s", target, e.Rule, whereIs(e.Origin))
}

// Is makes errors.Is(err, ErrDenied) hold.
func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// NotAllowed reports that no rule names it, where only what is allowed may be used.
func (e *DeniedError) NotAllowed() bool { return e.Rule == "" && e.Reason == notAllowed }

// Hint is what to do about it.
func (e *DeniedError) Hint() string {
	switch {
	case e.Rule != "" && e.Origin.Line > 0:
		return fmt.Sprintf("edit the rule at %s:%d", e.Origin.File, e.Origin.Line)
	case e.Rule != "" && e.Origin.File != "":
		return "change " + e.Origin.File
	case e.NotAllowed():
		return "allow " + targetName(e.Server, e.Account, e.Tool)
	}
	return ""
}

// ChangedError says that a tool differs from its pin. It is [ErrSchemaChanged].
type ChangedError struct {
	Server  string
	Account string
	Tool    string
	// Fields names the members that differ, such as "description".
	Fields []string
	// Reason is set instead when the definition cannot be pinned at all.
	Reason string
}

func (e *ChangedError) Error() string {
	target := targetName(e.Server, e.Account, e.Tool)
	if e.Reason != "" {
		return fmt.Sprintf("%s is blocked: %s", target, e.Reason)
	}
	return fmt.Sprintf("%s is blocked: its definition changed since it was pinned (%s)", target, strings.Join(e.Fields, ", "))
}

// Is makes errors.Is(err, ErrSchemaChanged) hold.
func (e *ChangedError) Is(target error) bool { return target == ErrSchemaChanged }

// Hint is the next step for a person.
func (e *ChangedError) Hint() string { return "review the change, then accept it" }

// targetName is how people and commands name a tool: server/tool, or
// server@account/tool.
func targetName(server, account, tool string) string {
	name := scopeName(server, account)
	if tool != "" {
		name += "/" + tool
	}
	return config.Unquoted(name)
}

// scopeName is server, or server@account.
func scopeName(server, account string) string { return config.AccountName(server, account) }

// whereIs says in words where a rule stands.
func whereIs(o config.Origin) string {
	var file string
	switch {
	case o.Layer == config.LayerUser:
		file = "user file"
	case o.Layer == config.LayerProject:
		file = "project file"
	default:
		file = o.File
	}
	switch {
	case file == "":
		return ""
	case o.Line == 0:
		return " (" + file + ")"
	}
	return fmt.Sprintf(" (%s, line %d)", file, o.Line)
}

// BudgetError says which budget is spent. It is [ErrBudget].
type BudgetError = budget.Error

// BudgetStatus is how far a budget is used up.
type BudgetStatus = budget.Status

// Session counts the calls of one session of a client, see [budget.Session].
type Session = budget.Session

// What a budget is for, where it is neither a run nor a window.
const (
	ScopeDispatch = budget.ScopeDispatch
	ScopeSession  = budget.ScopeSession
)

// WithBudget returns a context with which at most n tools can be called, see
// [budget.With].
func WithBudget(ctx context.Context, n int64) context.Context { return budget.With(ctx, n) }

// BudgetLeft returns how many more calls a context allows; false when it has no budget.
func BudgetLeft(ctx context.Context) (int64, bool) { return budget.Left(ctx) }
