package surface

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/policy"
)

// Server is a server, or one account at it, that a principal may see.
type Server struct {
	Name    string // as configured
	Account string // empty for the default one
	// Description is one line for a list; it is the user's own or the server's
	// title, and empty when there is none.
	Description string
	Transport   string
	// Eager: its lists may be read in the background without being asked for.
	Eager bool
	// Off: it is disabled, broken or held back; it shows nothing.
	Off bool
}

// Hosted is what a surface has to know of servers beside what the gate lets
// through. The implementation must be cheap in Servers, which every list asks.
type Hosted interface {
	// Servers are those that the principal may know of, in any order; an empty
	// principal asks for all there are. The slice becomes the caller's.
	Servers(principal string) []Server
	// Named is the name of a server in the host's own memory, false when there is
	// none of that name; every call asks.
	Named(name string) (kept string, ok bool)
	// Status is the state of all of them, or of the named one ("server" or
	// "server@account").
	Status(ctx context.Context, principal, name string) []Status
	// List brings one list of a server up to date, see host.Host.List.
	List(ctx context.Context, k policy.Key, method string) (policy.Catalog, error)
	// Listen subscribes at a server until ctx ends, see host.Host.Listen.
	Listen(ctx context.Context, k policy.Key, want Subscription, on func(wire.Message)) error
	// Notify sends a notification over the connection of k, if there is one.
	Notify(ctx context.Context, k policy.Key, method string, params []byte) error
	// Version is the revision that the connection of k speaks; it connects if need
	// be, see host.Host.Version.
	Version(ctx context.Context, k policy.Key) (string, error)
	// Release ends the connection of a lane.
	Release(k policy.Key)
	// Explain says what an error of the gate or the host means.
	Explain(err error) Problem
}

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

// Kind says what an error means to an agent.
type Kind string

// The kinds of problems.
const (
	KindOther         Kind = ""               // none of the others
	KindAnswer        Kind = "answer"         // the server's own answer, a *wire.Error
	KindLogin         Kind = "needs_login"    // a person has to log in
	KindDenied        Kind = "denied"         // a rule forbids it
	KindBudget        Kind = "budget"         // too many calls
	KindChanged       Kind = "schema_changed" // the tool is not what it was
	KindUnknownServer Kind = "unknown_server"
	KindUnknownTool   Kind = "unknown_tool"
	KindUnavailable   Kind = "unavailable"     // down, ejected, circuit open, too busy
	KindUnknown       Kind = "outcome_unknown" // it may have run
	KindOff           Kind = "off"             // disabled, or held back until approved
	KindCancelled     Kind = "cancelled"       // the caller left
)

// Problem is an error in words for an agent.
type Problem struct {
	Kind   Kind
	Server string // "name" or "name@account", where one is concerned
	// Text is what went wrong and Next the next step; both are one line.
	Text, Next string
	// RetryAfter is how long to wait, 0 when that is not known.
	RetryAfter time.Duration
}

// Logins are the logins that an agent may begin. Nothing of it waits for a person
// or opens a browser.
type Logins interface {
	// Begin starts a login at "server", "server@label" or "all" and returns at
	// once; the rest happens in the background.
	Begin(ctx context.Context, principal, target string) (Login, error)
	// Complete ends a login with the address that the browser was sent to.
	Complete(ctx context.Context, principal, target, redirectURL string) (Login, error)
	// Status is how the logins of a target stand, also those that have ended; an
	// empty target asks for all.
	Status(ctx context.Context, principal, target string) ([]Login, error)
}

// Login is how a login stands.
type Login struct {
	Server string `json:"server"` // "name" or "name@label"
	// Flow is what the person has to do: "browser", "paste" or "device"; empty when
	// nothing is left to do.
	Flow string `json:"flow,omitempty"`
	// State is "pending", "done" or "failed".
	State string `json:"state"`
	// Handle names this login; it proves nothing.
	Handle string `json:"handle,omitempty"`
	URL    string `json:"url,omitempty"`
	Code   string `json:"code,omitempty"` // device flow
	// Expires is when it is given up.
	Expires time.Time `json:"expires,omitzero"`
	// Markdown is the same for a person, in full. Empty: it is made from the rest.
	Markdown string `json:"-"`
	Reason   string `json:"reason,omitempty"` // of failed
}

// Profile is a named selection: all of the servers, except that where Tools names
// tools of a server ("server/tool") only those are shown. Both are globs.
type Profile struct{ Servers, Tools []string }

// Defaults of Options.
const (
	DefaultSeparator   = "__"
	DefaultTokenBudget = 10_000
	DefaultQuiet       = 50 * time.Millisecond
)

// Options steer a Surface. The zero value works, except that Hosted is needed.
type Options struct {
	// Hosted knows the servers.
	Hosted Hosted
	// Logins begins logins. Nil: the agent is told which command to run.
	Logins Logins
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
