package surface

import (
	"errors"
	"log/slog"
	"time"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/internal/naming"
)

// What the gate tells a surface, under the names that views and gateways use.
type (
	// Server is a server, or one account at it, that exists for a caller.
	Server = policy.Server
	// Profile is a named selection of servers and tools.
	Profile = policy.Profile
	// Login is the state of a login.
	Login = policy.Login
	// Kind says what an error means to an agent.
	Kind = policy.Kind
	// Problem is an error in words for an agent.
	Problem = policy.Problem
	// Subscription says of which changes an agent wants to hear.
	Subscription = policy.Subscription
)

// The kinds of problems, see [policy.Kind].
const (
	KindOther         = policy.KindOther
	KindAnswer        = policy.KindAnswer
	KindLogin         = policy.KindLogin
	KindDenied        = policy.KindDenied
	KindBudget        = policy.KindBudget
	KindChanged       = policy.KindChanged
	KindUnknownServer = policy.KindUnknownServer
	KindUnknownTool   = policy.KindUnknownTool
	KindUnsupported   = policy.KindUnsupported
	KindUnavailable   = policy.KindUnavailable
	KindUnknown       = policy.KindUnknown
	KindOff           = policy.KindOff
	KindCancelled     = policy.KindCancelled
)

// Status is the state of one server or account.
type Status struct {
	Server     string `json:"server"` // "name" or "name@account"
	State      string `json:"state"`
	Transport  string `json:"transport"`
	Version    string `json:"protocol_version,omitempty"`
	Tools      int    `json:"tools"`
	Stale      bool   `json:"stale,omitempty"`
	Circuit    string `json:"circuit,omitempty"`
	Ejected    bool   `json:"ejected,omitempty"`
	NeedsLogin bool   `json:"needs_login,omitempty"`
	Reason     string `json:"reason,omitempty"`
	LastError  string `json:"last_error,omitempty"`
	Next       string `json:"next,omitempty"` // what a person has to do
}

// statusOf is the state of a server as agents read it. Commands and texts of the
// operator are left out, except for the login that a person has to do.
func statusOf(s policy.ServerStatus) Status {
	st := Status{
		Server: naming.Label(s.Name, s.Account), State: string(s.State), Transport: s.Transport, Version: s.ProtocolVersion, Tools: s.Tools,
		Stale: s.Stale, Circuit: s.Circuit, Ejected: s.Ejected, NeedsLogin: s.Auth.NeedsLogin(), Reason: s.Auth.Reason,
		LastError: s.LastError,
	}
	if st.NeedsLogin {
		st.Next = s.Auth.Command
	}
	return st
}

// Defaults of Options.
const (
	DefaultSeparator   = "__"
	DefaultTokenBudget = 10_000
	DefaultQuiet       = 50 * time.Millisecond
)

// Options steer a Surface. The zero value works.
type Options struct {
	// Mode is what Auto shows: "auto" (default), "meta" or "direct".
	Mode string
	// TokenBudget is what a list of tools may cost under auto. Default 10,000.
	TokenBudget int
	// Separator stands between server and tool in direct names. Default "__".
	Separator string
	// Profiles by name.
	Profiles map[string]Profile
	// Name and Version are what usher calls itself. Default "usher" and "dev".
	Name, Version string
	// Quiet is how long a list waits for servers that were never seen, once half
	// of them have answered. Default 50ms, or as long as the last one took.
	Quiet time.Duration
	// Events says when lists changed. Nil: only [Surface.Notified] does.
	Events *event.Bus[event.Event]
	// Log hears warnings. Default: discard.
	Log *slog.Logger
}

// ErrUnknownView: there is no server or profile of that name.
var ErrUnknownView = errors.New("no such endpoint")

// Explanation says what Auto chose and why.
type Explanation struct {
	Mode   string        `json:"surface"` // "meta" or "direct"
	Why    string        `json:"why"`
	Budget int           `json:"token_budget"`
	Tokens int           `json:"tokens"` // of the whole direct list
	Meta   int           `json:"meta_tokens"`
	Rows   []ServerCosts `json:"servers"`
}

// ServerCosts is what one server adds to the direct list.
type ServerCosts struct {
	Server string `json:"server"`
	Tools  int    `json:"tools"`
	Tokens int    `json:"tokens"`
	Known  bool   `json:"known"` // false: it was never seen, so nothing is counted
}
