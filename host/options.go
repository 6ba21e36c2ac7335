package host

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// Key says whom a connection belongs to. The zero Principal is the local user, the
// zero Account the default one, the zero Lane the connection shared by all agents
// of the principal.
type Key struct{ Principal, Server, Account, Lane string }

// Local is the principal of a single user's process.
const Local = "local"

func (k Key) normal() Key {
	k.Principal = cmp.Or(k.Principal, Local)
	return k
}

// Name is how people name the account: "server" or "server@label".
func (k Key) Name() string { return config.AccountName(k.Server, k.Account) }

// Shared is the key of the connection that all agents of the principal share: the same
// account without its lane.
func (k Key) Shared() Key {
	k = k.normal()
	k.Lane = ""
	return k
}

// Defaults of Options.
const (
	DefaultMaxConnected     = config.DefaultMaxConnected
	DefaultStartConcurrency = 8
	DefaultDrain            = 30 * time.Second
)

// Options steer a Host. The zero value works.
type Options struct {
	// MaxConnected bounds the children alive at once. Default 10. The least
	// recently used idle one makes room for another.
	MaxConnected int
	// StartConcurrency bounds how many children start at once. Default 8.
	StartConcurrency int
	// RunnerConcurrency is the same for package runners (npx, uvx, …), which
	// download and compile at a cold start. Default max(2, cores).
	RunnerConcurrency int
	// Drain is how long in-flight requests may run after Reload or Apply took their
	// connection out of use. Default 30s.
	Drain time.Duration
	// Auth adds credentials to HTTP requests. Nil: none.
	Auth Authorizer
	// LoginCommand is how a person logs in to the account of a key, for
	// NeedsLoginError.Command where Auth says nothing. Nil: nobody knows.
	LoginCommand func(Key) string
	// Memory keeps protocol versions and catalogs. Nil: for the life of the Host.
	Memory Memory
	// Lookup fills in placeholders, at dial time.
	Lookup config.Lookup
	// Approved returns an error while a definition is held back. Nil: all are
	// approved. It is asked before every dial.
	Approved func(context.Context, config.Server) error
	// Lease is taken before a server marked singleton is started and released when
	// it is gone. Nil: none.
	Lease func(context.Context, config.Server) (release func(), err error)
	// Connection returns what the connections of a key start from: client name,
	// capabilities, a ring for standard error that survives restarts. It is asked
	// once per key. With a Version the connection speaks that one where the server
	// can; without, the one that is remembered. Authorize and OnNotification are
	// overwritten.
	Connection func(Key) upstream.Options
	// OnNotification hears what a server says that belongs to no request. It must
	// not block.
	OnNotification func(Key, mcp.Message)
	// OnForget hears that nobody used a key for so long, or that there are so many,
	// that it was forgotten. It must not block.
	OnForget func(Key)
	// Events hears of changes of state and of lists. Nil: nobody does.
	Events *event.Bus[event.Event]
	// Log hears warnings. Default: discard.
	Log *slog.Logger
	// Executable guards children, see upstream.Options. Empty: no guard.
	Executable string
	// Transport carries all HTTP. Default: one per connection.
	Transport http.RoundTripper
	// TransportFor chooses what carries the HTTP of one server, at every dial. Nil:
	// Transport does.
	TransportFor func(context.Context, config.Server) http.RoundTripper
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	out.MaxConnected = orDefault(out.MaxConnected, DefaultMaxConnected)
	out.StartConcurrency = orDefault(out.StartConcurrency, DefaultStartConcurrency)
	out.RunnerConcurrency = orDefault(out.RunnerConcurrency, max(2, runtime.GOMAXPROCS(0)))
	out.Drain = orDefault(out.Drain, DefaultDrain)
	if out.Memory == nil {
		out.Memory = newMemory()
	}
	if out.Log == nil {
		out.Log = slog.New(slog.DiscardHandler)
	}
	return out
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Authorizer gives HTTP requests their credential and hears of refusals.
type Authorizer interface {
	// Authorize sets the credential of req, refreshing it if need be; a
	// *NeedsLoginError when there is none. req's context is the caller's.
	Authorize(ctx context.Context, k Key, srv *config.Server, req *http.Request) error
	// Refused is told of a 401, or of a 403 that asks for more scope. Nil means
	// that one more try is worth it, of which a request has two; otherwise a
	// *NeedsLoginError.
	Refused(ctx context.Context, k Key, srv config.Server, refusal *upstream.UnauthorizedError) error
}

// Memory caches what is costly to fetch. Its methods swallow their own failures:
// everything in it can be fetched again.
type Memory interface {
	// Era returns the protocol version that the server with this digest spoke.
	Era(ctx context.Context, digest string) (version string, ok bool)
	RememberEra(ctx context.Context, digest, version string)
	// Tools returns the last known catalog of k, learned from the definition with
	// this digest.
	Tools(ctx context.Context, k Key, digest string) (Catalog, bool)
	RememberTools(ctx context.Context, k Key, digest string, c Catalog)
}

// conn is what a Host needs of a connection; *upstream.Conn is one.
type conn interface {
	Do(context.Context, mcp.Request) ([]byte, error)
	Call(context.Context, mcp.Request, mcp.Responder) ([]byte, error)
	List(ctx context.Context, method string) (upstream.List, error)
	LearnTools(tools [][]byte) [][]byte
	Listen(context.Context, upstream.Subscription, func(mcp.Message)) error
	Notify(ctx context.Context, method string, params []byte) error
	Version() string
	Info() upstream.ServerInfo
	Stats() upstream.Stats
	Gone() context.Context
	Close() error
}

// dialer makes connections; tests have one of their own.
type dialer func(context.Context, *config.Server, *upstream.Options) (conn, error)

func dialUpstream(ctx context.Context, srv *config.Server, opt *upstream.Options) (conn, error) {
	c, err := upstream.Dial(ctx, srv, opt)
	if err != nil {
		return nil, err
	}
	return c, nil
}
