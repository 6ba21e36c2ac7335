package policy

import (
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/config"
)

// What callers branch on, with errors.Is. All three are refusals of the gate:
// nothing was sent to the server.
var (
	// ErrDenied: a rule or the program's own policy forbids it, see [DeniedError].
	ErrDenied = errors.New("denied")
	// ErrBudget: the calls that were granted are used up, see [BudgetError].
	ErrBudget = errors.New("budget spent")
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

// Hint is what to do about it.
func (e *DeniedError) Hint() string {
	switch {
	case e.Rule != "" && e.Origin.Line > 0:
		return fmt.Sprintf("edit the rule at %s:%d", e.Origin.File, e.Origin.Line)
	case e.Rule != "" && e.Origin.File != "":
		return "change " + e.Origin.File
	case e.Reason == notAllowed:
		return "usher allow " + targetName(e.Server, e.Account, e.Tool)
	}
	return ""
}

// What a budget is for, where it is neither a run nor a window.
const (
	ScopeDispatch = "dispatch" // a context, see WithBudget
	ScopeSession  = "session"  // a session of a client, see Session
)

// BudgetError says which budget is spent. It is [ErrBudget].
type BudgetError struct {
	// Scope is what the budget is for: [ScopeDispatch], [ScopeSession], or empty for
	// a run or a window.
	Scope  string
	Server string // empty: the budget of all servers together
	Limit  int64
	Window time.Duration // 0: the budget of the whole run
	Refill time.Time     // zero: not before usher starts again
}

func (e *BudgetError) Error() string {
	switch e.Scope {
	case ScopeDispatch:
		return fmt.Sprintf("the budget of %d calls for this task is spent", e.Limit)
	case ScopeSession:
		return fmt.Sprintf("the budget of %d calls per session is spent", e.Limit)
	}
	whose := "all servers together"
	if e.Server != "" {
		whose = config.Unquoted(e.Server)
	}
	if e.Window == 0 {
		return fmt.Sprintf("the budget of %d calls per run is spent (%s); it refills when usher starts again", e.Limit, whose)
	}
	wait := max(time.Until(e.Refill), 0).Round(time.Second)
	return fmt.Sprintf("the budget of %d calls per %s is spent (%s); it refills in %s, at %s",
		e.Limit, Short(e.Window), whose, Short(wait), e.Refill.Format(time.TimeOnly))
}

// Is makes errors.Is(err, ErrBudget) hold.
func (e *BudgetError) Is(target error) bool { return target == ErrBudget }

// Hint is what to do about it.
func (e *BudgetError) Hint() string {
	switch e.Scope {
	case ScopeDispatch:
		return ""
	case ScopeSession:
		return "start a new session, or raise usher.budgets.session"
	}
	setting := "usher.budgets"
	if e.Server != "" {
		setting = "usher.budgets.servers." + e.Server
	}
	if e.Window == 0 {
		return "raise " + setting + ".run"
	}
	return "wait, or raise " + setting + ".calls"
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
	return fmt.Sprintf("%s is blocked: its definition is not the one that was pinned (%s); usher pins accept %[1]s", target, list(e.Fields))
}

// Is makes errors.Is(err, ErrSchemaChanged) hold.
func (e *ChangedError) Is(target error) bool { return target == ErrSchemaChanged }

// Hint is the command that shows the change; the one that accepts it stands in the
// message.
func (e *ChangedError) Hint() string {
	return "usher pins diff " + targetName(e.Server, e.Account, e.Tool)
}

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

// Short prints a duration without the units that are zero: 1h instead of 1h0m0s.
func Short(d time.Duration) string {
	s := d.String()
	if len(s) > 3 && s[len(s)-3:] == "m0s" {
		s = s[:len(s)-2]
	}
	if len(s) > 3 && s[len(s)-3:] == "h0m" {
		s = s[:len(s)-2]
	}
	return s
}

func list(fields []string) string {
	switch len(fields) {
	case 0:
		return "it reads differently"
	case 1:
		return fields[0]
	}
	out := fields[0]
	for _, f := range fields[1:] {
		out += ", " + f
	}
	return out
}
