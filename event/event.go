package event

import "time"

// Kind names a type of event in JSON and in logs.
type Kind string

// The kinds of the events of this package.
const (
	KindServer Kind = "server"
	KindGrant  Kind = "grant"
	KindTools  Kind = "tools"
	KindCall   Kind = "call"
	KindLog    Kind = "log"

	KindPin     Kind = "pin"
	KindCircuit Kind = "circuit"
	KindBudget  Kind = "budget"
)

// Event is any of the event types below. Readers tell them apart with a type
// switch and ignore what they do not know.
type Event interface {
	// Kind is the same for all events of one Go type.
	Kind() Kind
}

// Header is what all events have in common.
type Header struct {
	// At is when it happened.
	At time.Time `json:"at"`
	// Server is the configured name of the server concerned; empty when the
	// event concerns none.
	Server string `json:"server,omitempty"`
	// Account is the label of the account (`work` in `linear@work`); empty for
	// the only or default account.
	Account string `json:"account,omitempty"`
	// Principal is whom it concerns; empty in a single user's process.
	Principal string `json:"principal,omitempty"`
}

// ServerChanged says that a server moved from one state to another.
type ServerChanged struct {
	Header
	From string `json:"from"`
	To   string `json:"to"`
	// Reason is a short sentence for people, without secrets.
	Reason string `json:"reason,omitempty"`
}

// GrantChanged says that a login was stored, refreshed, lost or removed.
type GrantChanged struct {
	Header
	// Change is one of the Grant constants.
	Change string `json:"change"`
	// Expires is when the new access token ends; zero when unknown.
	Expires time.Time `json:"expires,omitzero"`
	Reason  string    `json:"reason,omitempty"`
}

// What can happen to a grant.
const (
	GrantStored    = "stored"
	GrantRefreshed = "refreshed"
	GrantLost      = "lost" // a person has to log in again
	GrantRemoved   = "removed"
)

// ToolsChanged says that a server's list of tools, prompts or resources is
// another one than before.
type ToolsChanged struct {
	Header
	// List is "tools", "prompts" or "resources".
	List  string `json:"list"`
	Count int    `json:"count"`
}

// CallFinished says that a call ended, well or not.
type CallFinished struct {
	Header
	Method  string        `json:"method"`
	Tool    string        `json:"tool,omitempty"`
	Took    time.Duration `json:"took_ns"`
	Outcome string        `json:"outcome"`
	// Bytes is the size of the answer.
	Bytes int64 `json:"bytes,omitempty"`
}

// PinChanged says that a tool is new, or another one than was pinned.
type PinChanged struct {
	Header
	Tool string `json:"tool"`
	// Change is what happened: "new", "changed", "renamed", "removed" or
	// "back".
	Change string `json:"change"`
	// From is the earlier name of a tool that was renamed.
	From string `json:"from,omitempty"`
}

// CircuitChanged says that the circuit breaker of a server opened, so that requests
// fail without being sent, or closed again.
type CircuitChanged struct {
	Header
	Open bool `json:"open"`
}

// BudgetSpent says that a call was refused because a budget is spent.
type BudgetSpent struct {
	Header
	// Scope is "dispatch" or "session"; empty for a run or a window.
	Scope string `json:"scope,omitempty"`
	// Shared: it is the budget of all servers together.
	Shared bool      `json:"shared,omitempty"`
	Limit  int64     `json:"limit"`
	Refill time.Time `json:"refill,omitzero"`
}

// LogLine is a line a server wrote to stderr or sent as a log notification.
// It is untrusted text: callers escape it before they show it.
type LogLine struct {
	Header
	Level string `json:"level,omitempty"`
	Text  string `json:"text"`
}

// Kind implements [Event].
func (ServerChanged) Kind() Kind { return KindServer }

// Kind implements [Event].
func (GrantChanged) Kind() Kind { return KindGrant }

// Kind implements [Event].
func (ToolsChanged) Kind() Kind { return KindTools }

// Kind implements [Event].
func (CallFinished) Kind() Kind { return KindCall }

// Kind implements [Event].
func (PinChanged) Kind() Kind { return KindPin }

// Kind implements [Event].
func (CircuitChanged) Kind() Kind { return KindCircuit }

// Kind implements [Event].
func (BudgetSpent) Kind() Kind { return KindBudget }

// Kind implements [Event].
func (LogLine) Kind() Kind { return KindLog }
