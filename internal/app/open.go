// Package app wires configuration, store, supervision, policy and logins together, for
// the usher command and for the front door of the library (package usher).
//
//	h, err := app.Open(ctx, nil)       // the user's own configuration
//	defer h.Close()
//	result, err := h.Call(ctx, "github", "search_issues", []byte(`{"query":"bug"}`), nil)
//
// A call passes App.Call (this package) → policy.Gate (is it allowed?) → host.Host
// (supervision) → upstream.Conn (the connection).
package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/advice"
	"github.com/usher-mcp/usher/internal/catalog"
	"github.com/usher-mcp/usher/internal/logins"
	"github.com/usher-mcp/usher/internal/observe"
	"github.com/usher-mcp/usher/internal/serverlog"
	"github.com/usher-mcp/usher/internal/singleton"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/policy/pins"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/upstream"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// Options steer [Open]. The zero value opens what the usher command would.
type Options struct {
	// Config is a loaded configuration. Nil: it is loaded with Load. An empty
	// *config.Config makes a host without servers, for programs that Spawn.
	Config *config.Config
	// Load says where configuration and state are found.
	Load config.LoadOptions
	// Store keeps logins, secrets, approvals, pins and the catalog, as it is given:
	// see keys.Sealed. With a *vault.Memory, sealed or not, nothing is written to disk.
	// Nil: the store that the configuration names, by default a sealed SQLite file in
	// the state directory; it is closed with the Host.
	Store vault.Store
	// Keychain may hold the key of the store. Default: the operating system's.
	Keychain keys.Keychain
	// Prompt asks the person for a passphrase or an input. Default: nobody.
	Prompt Prompt
	// Principal is whose grants, pins and cache are used. Default "local".
	Principal string
	// Hook is a policy of the embedding program, asked for every call after the
	// configured rules; see [App.SetHook].
	Hook policy.Hook
	// OnCall hears of every call of a tool and use of a prompt or resource when it
	// has ended, for metrics. It must be cheap and must not block.
	OnCall func(policy.Finished)
	// Lookup adds sources for placeholders. Env defaults to the environment.
	Lookup config.Lookup
	// Capabilities is the raw JSON object of what this program can answer when a
	// server asks. Default {}.
	Capabilities []byte
	// ClientName and ClientVersion say who we are. Default "usher".
	ClientName, ClientVersion string
	// Events hears what happens. Nil: nobody does.
	Events *event.Bus[event.Event]
	// Log hears warnings. Default: discard.
	Log *slog.Logger
	// Tracer makes spans of requests, of agents and to servers, and passes the trace
	// context on in _meta. Nil: none are made; an agent's own context passes as it is.
	Tracer trace.Tracer
	// Executable is this program, when it calls process.Main first: children are
	// then guarded, see process.Options.Shim.
	Executable string
	// StartEarly is the account that will be called first, as in [App.Call]. If it is
	// a stdio server, its shim process is started while the store is opened.
	StartEarly string
	// Transport carries all HTTP. Default: one for all servers.
	Transport http.RoundTripper
	// ExitsAfterClose says that the process exits right after Close, and that no call
	// but an agent's is in flight then. Close works in parallel, and leaves to the
	// operating system what ends with the process.
	ExitsAfterClose bool
}

// App connects the parts of one process. All methods may be used concurrently.
type App struct {
	cfg       atomic.Pointer[config.Config] // see ReloadConfig
	load      config.LoadOptions
	changing  sync.Mutex // held while the configuration is replaced
	spawning  nameLocks
	dirs      config.Dirs
	store     vault.Store
	owned     bool // close the store too
	shared    bool // other machines may use the store too
	keys      *keys.Keys
	principal string
	self      policy.Caller // the principal, without a scope
	hosted    *host.Host
	catalog   *catalog.WriteBehind
	gate      *policy.Gate
	engine    *auth.Engine
	logins    *logins.Manager
	singleton *singleton.Leases
	approvals approvals
	network   network
	audit     *observe.AuditLog
	calls     observe.Activity
	logs      serverlog.Buffers

	placeholders config.Lookup

	started     time.Time
	exitsAfter  bool           // see Options.ExitsAfterClose
	spareShim   *process.Spare // nil: no shim was started early
	closing     sync.Once
	surfaceOnce sync.Once // makes surface when it is first used
	surface     atomic.Pointer[surface.Surface]
	console     atomic.Pointer[console.Console] // the console, where one is served

	clientVersion string
	bus           *event.Bus[event.Event] // the embedding program's, or an own one without calls
	log           *slog.Logger            // nil: warnings are discarded
	tracer        trace.Tracer

	// life ends what runs beside requests; background is waited for after that.
	life       context.Context
	end        context.CancelFunc
	background sync.WaitGroup
}

// Open wires a host. Nothing is started and nothing is reached before it is used.
func Open(ctx context.Context, opt *Options) (*App, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	if o.Config == nil {
		cfg, err := config.Load(o.Load)
		if err != nil {
			return nil, err
		}
		o.Config = cfg
	}
	dirs, err := config.FindDirs(o.Load.System)
	if err != nil {
		return nil, err
	}
	h := &App{
		load: o.Load, dirs: dirs, store: o.Store, principal: cmp.Or(o.Principal, vault.Local),
		self: policy.As(cmp.Or(o.Principal, vault.Local)), clientVersion: o.ClientVersion, log: o.Log, tracer: o.Tracer, exitsAfter: o.ExitsAfterClose, started: time.Now(),
	}
	h.cfg.Store(o.Config)
	if h.bus = o.Events; h.bus == nil {
		h.bus = &event.Bus[event.Event]{}
	}
	h.life, h.end = context.WithCancel(context.Background())
	h.spareShim = spareShim(&o)
	if h.store == nil {
		if h.store, h.keys, h.shared, err = openStore(ctx, &o, dirs); err != nil {
			h.spareShim.Close()
			return nil, err
		}
		h.owned = true
	}
	if err := h.wire(ctx, &o); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// wire makes the parts, from the network up to the gate.
func (h *App) wire(ctx context.Context, o *Options) error {
	h.approvals = approvals{h.store, h.principal}
	h.network.open(o.Transport, &h.approvals)
	h.engine = auth.New(h.store, &auth.Options{
		Events: h.bus, Log: o.Log, PublicOnly: h.approvals.publicOnly,
		DiscoveryHosts: func() []string { return h.Config().Usher.Gateway.DiscoveryHosts },
	})
	h.network.authorize(h.engine)
	h.placeholders = (&placeholders{h.store, h.principal, h.Config, &h.approvals}).lookup(o)
	h.catalog = catalog.NewWriteBehind(h.store)
	h.singleton = singleton.New(h.store, &singleton.Options{Stop: func(server string) error { return h.hosted.Stop(server) }, Log: o.Log})
	h.hosted = host.New(hostOptions(h, o))
	h.logins = logins.New(&logins.Options{
		Engine: h.engine, Hosted: h.hosted, Store: h.store, Principal: h.principal,
		Gate: h.Gate, Config: h.Config, Approved: h.approvals.check, Lookup: h.placeholders, Getenv: o.Load.System.WithDefaults().Getenv,
		Forget: h.forgetAccount, List: func(ctx context.Context, a auth.Account) { _, _ = h.Tools(ctx, a.String()) },
		Events: h.bus, Log: o.Log, Life: h.life, Background: &h.background,
	})
	h.audit = observe.NewAuditLog(h.store, &observe.AuditOptions{Settings: func() config.Audit { return h.Config().Usher.Audit }, Log: o.Log})
	h.gate = policy.NewGate(h.hosted, h.store, &policy.Options{
		Config: o.Config, Hook: o.Hook, Lock: projectLock(o), OnCall: onCall(h, o), Log: o.Log,
		Accounts: h.logins.Accounts(), Logins: h.logins.ForAgents(), Tracer: o.Tracer,
		OnNote: func(k host.Key, n pins.Note) { observe.PublishPin(h.bus, k, n) },
	})
	for _, srv := range o.Config.Servers {
		if srv.Problem != nil {
			continue // `usher list` says what is wrong with it
		}
		if err := h.hosted.Register(srv); err != nil {
			return err
		}
	}
	return nil
}

// hostOptions are the options of the supervisor.
func hostOptions(h *App, o *Options) *host.Options {
	return &host.Options{
		Auth:         logins.NewAuthorizer(h.engine),
		LoginCommand: advice.LoginCommand,
		MaxConnected: o.Config.Usher.MaxConnected,
		Memory:       h.catalog,
		Lookup:       h.placeholders,
		Approved:     h.approvals.check,
		Lease:        h.singleton.Take,
		OnNotification: func(k host.Key, m mcp.Message) {
			h.gate.Notified(k, m)
			if s := h.surface.Load(); s != nil {
				s.Notified(k, m)
			}
		},
		OnForget: func(k host.Key) {
			if k.Lane == "" {
				h.gate.Drop(k)
				h.logs.Drop(k)
			}
		},
		Connection: connectionOptions(h, o),
		Events:     h.bus,
		Log:        o.Log,
		Executable: o.Executable,
		Transport:  h.network.any,

		TransportFor: h.TransportFor,
	}
}

// forgetAccount drops what is kept in memory for a named account that is gone:
// connections, lists, log lines.
func (h *App) forgetAccount(k host.Key) {
	h.hosted.ReleaseAccount(k)
	h.gate.Drop(k)
	h.catalog.Forget(k)
	h.logs.Drop(k)
	if s := h.surface.Load(); s != nil {
		s.AccountGone()
	}
}

// onCall records every call that ended, before its answer is sent: it must be cheap.
func onCall(h *App, o *Options) func(policy.Finished) {
	return func(f policy.Finished) {
		h.calls.Add(f)
		h.audit.Add(f)
		if o.OnCall != nil {
			o.OnCall(f)
		}
		if o.Events != nil && o.Events.Subscribers() > 0 {
			observe.PublishCall(o.Events, f)
		}
	}
}

// connectionOptions are the options of every connection.
func connectionOptions(h *App, o *Options) func(host.Key) upstream.Options {
	return func(k host.Key) upstream.Options {
		opt := upstream.Options{
			ClientName: o.ClientName, ClientVersion: o.ClientVersion, Capabilities: o.Capabilities,
			Stderr: h.logs.Of(k), Tracer: o.Tracer,
		}
		if k.Server == auth.ParseAccount("", o.StartEarly).Server {
			opt.Spare = h.spareShim
		}
		if s := h.surface.Load(); s != nil {
			l := s.Lane(k)
			opt.Capabilities, opt.Version, opt.OnRequest, opt.Greet = l.Capabilities, l.Version, l.Ask, l.Greet
		}
		return opt
	}
}

// spareShim starts the shim process of the server that will be called first. A shim does
// nothing before it receives a command, so policy need not have allowed the server yet.
func spareShim(o *Options) *process.Spare {
	srv, ok := o.Config.Server(auth.ParseAccount("", o.StartEarly).Server)
	if !ok || srv.Transport != config.TransportStdio || srv.Disabled || srv.Problem != nil {
		return nil
	}
	return process.NewSpare(o.Executable, filepath.Base(srv.Command))
}

// Config is the configuration in use: the one the host was opened with, or the one
// that ReloadConfig found last.
func (h *App) Config() *config.Config { return h.cfg.Load() }

// Gate is the policy in front of the servers, for surfaces that need more than
// the methods of App.
func (h *App) Gate() *policy.Gate { return h.gate }

// Close closes all connections, stops all children and saves their last log lines.
func (h *App) Close() error {
	var err error
	h.closing.Do(func() {
		h.end()
		h.background.Wait()
		if s := h.surface.Load(); s != nil {
			s.Close()
		}
		if h.gate != nil {
			h.gate.Close(context.Background())
		}
		h.spareShim.Close()
		closeServers(h)
		if h.engine != nil {
			err = errors.Join(err, h.engine.Close())
		}
		if _, inMemory := vault.Unsealed(h.store).(*vault.Memory); !inMemory {
			err = errors.Join(err, h.logs.Save(logDir(h.dirs)))
		}
		h.network.close()
		if h.owned {
			err = errors.Join(err, h.store.Close())
		}
	})
	return err
}

// closeServers stops the children, and closes the audit log when the last record is in
// it: calls that end because their server stops are recorded too.
func closeServers(h *App) {
	var early sync.WaitGroup
	if h.exitsAfter && h.surface.Load() == nil {
		early.Go(h.audit.Close) // no call is in flight: it is written while the children stop
	}
	if h.hosted != nil {
		h.hosted.Close()
		h.catalog.Close()
	}
	early.Wait()
	h.audit.Close()
}

// Executable returns what Options.Executable should be in a program whose main
// function calls process.Main first.
func Executable() string { return process.Self() }

// Auth is the OAuth engine, for surfaces that log people in.
func (h *App) Auth() *auth.Engine { return h.engine }

// Logins connects the OAuth engine with servers and accounts.
func (h *App) Logins() *logins.Manager { return h.logins }

// Audit is the audit log of all processes that share the store.
func (h *App) Audit() *observe.AuditLog { return h.audit }

// TransportFor carries the HTTP requests to a server.
func (h *App) TransportFor(ctx context.Context, srv config.Server) http.RoundTripper {
	return h.network.transportFor(ctx, srv)
}

// key reads "server" or "server@label" and returns an error for a server that cannot be
// used at all.
func (h *App) key(account string) (host.Key, error) {
	server, label, err := config.ParseAccount(account)
	if err == nil {
		err = h.Config().CheckUsable(server)
	}
	return host.Key{Principal: h.principal, Server: server, Account: label}, err
}
