package budget

import (
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/config"
)

// ErrSpent means that the calls that were granted are used up, see [Error].
var ErrSpent = errors.New("budget spent")

// What a budget is for, where it is neither a run nor a window.
const (
	ScopeDispatch = "dispatch" // a context, see With
	ScopeSession  = "session"  // a session of a client, see Session
)

// Error says which budget is spent. It is [ErrSpent].
type Error struct {
	// Scope is what the budget is for: [ScopeDispatch], [ScopeSession], or empty for
	// a run or a window.
	Scope  string
	Server string // empty: the budget of all servers together
	Limit  int64
	Window time.Duration // 0: the budget of the whole run
	Refill time.Time     // zero: not before usher starts again
}

func (e *Error) Error() string {
	switch e.Scope {
	case ScopeDispatch:
		return fmt.Sprintf("the budget of %d calls for this task is exhausted", e.Limit)
	case ScopeSession:
		return fmt.Sprintf("the budget of %d calls per session is exhausted", e.Limit)
	}
	whose := "all servers together"
	if e.Server != "" {
		whose = config.Unquoted(e.Server)
	}
	if e.Window == 0 {
		return fmt.Sprintf("the budget of %d calls per run is exhausted (%s); it resets when usher restarts", e.Limit, whose)
	}
	wait := max(time.Until(e.Refill), 0).Round(time.Second)
	return fmt.Sprintf("the budget of %d calls per %s is exhausted (%s); it resets in %s, at %s",
		e.Limit, Short(e.Window), whose, Short(wait), e.Refill.Format(time.TimeOnly))
}

// Is makes errors.Is(err, ErrSpent) hold.
func (e *Error) Is(target error) bool { return target == ErrSpent }

// Hint is what to do about it.
func (e *Error) Hint() string {
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
