package console

import (
	"context"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/status"
	"github.com/usher-mcp/usher/surface"
)

// World is what a console shows and steers. It acts for one principal, the person
// at the browser; everything that passes to a server goes through policy. All
// methods may be called concurrently, and those without a context are answered from
// memory or from the store within a moment.
type World interface {
	// Servers says how every server and account is, sorted by name.
	Servers(ctx context.Context) []Server
	// Logs are the last lines that a server wrote to standard error.
	Logs(account string, lines int) []LogLine

	// Tools are the last known tools of all servers, sorted; nobody is asked.
	Tools(ctx context.Context) ([]Tool, error)
	// List asks a server for its tools.
	List(ctx context.Context, account string) error
	// Call runs a tool.
	Call(ctx context.Context, account, tool string, arguments []byte) ([]byte, error)
	// Explain says what an error of List or Call means and what to do.
	Explain(err error) surface.Problem

	// Calls are those that ended last, newest first.
	Calls() []Call
	// Pins are the tools that are blocked because they changed.
	Pins(ctx context.Context) ([]Pin, error)
	// Accept takes the changed definition with this hash as the new pin.
	Accept(ctx context.Context, server, tool, hash string) error
	// Budgets says how far budgets with a limit are used up.
	Budgets() []policy.BudgetStatus

	// Accounts are the logins there are.
	Accounts(ctx context.Context) ([]auth.Status, error)
	// Login begins the login of an account, or with "" of all that have none, and
	// returns at once.
	Login(account string) error
	// Logins says how the logins stand that were begun; nil before the first.
	Logins() LoginDriver
	// Logout ends a login.
	Logout(ctx context.Context, account string) error

	// Reload drops the connections of a server; the next request starts it again.
	Reload(ctx context.Context, server string) error
	// Stop ends the connections of a server.
	Stop(server string) error

	// Subscribe tells when to look again.
	Subscribe() *event.Subscription[event.Event]
}

// Server is one account of a server.
type Server struct {
	status.Server
	Where string // its command or address, without secrets
	// MaxRestarts within RestartWindow eject it.
	MaxRestarts   int
	RestartWindow time.Duration
	Latency       []Second
	History       []Moment // newest first
}

// Second is what was called within one second.
type Second struct {
	Calls, Failed int
	Worst         time.Duration
}

// Moment is a change of a server's state.
type Moment struct {
	At       time.Time
	From, To host.State
	Reason   string
}

// LogLine is a line of foreign text.
type LogLine struct {
	At   time.Time
	Text string
}

// Tool is a tool that the person may use.
type Tool struct {
	Account    string
	Name       string
	Definition []byte // raw, of the server's making
	Blocked    bool   // it changed, and waits for approval
}

// Call is a call that ended.
type Call struct {
	Number    uint64 // grows with every call
	Account   string
	Principal string // "" for the console's own
	Tool      string
	Outcome   string
	Failed    bool
	Began     time.Time
	Took      time.Duration
	Bytes     int
	Problem   string // what went wrong; foreign text in part
	Arguments string // names and kinds, never values
}

// Pin is a tool that changed.
type Pin struct {
	Server, Tool string
	Hash         string // of the changed definition
	Since        time.Time
	Changes      []Change
	Hidden       []string // members with invisible text
	Incomplete   bool     // too large to have been kept
}

// Change is one difference; its lines have a sign in front, as in a diff.
type Change struct {
	What, Kind string
	Lines      []DiffLine
}

// DiffLine is a line that was taken out ("-"), put in ("+") or left (" ").
type DiffLine struct{ Sign, Text string }
