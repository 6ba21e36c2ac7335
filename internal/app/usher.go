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
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/upstream"
	"github.com/usher-mcp/usher/vault"
)

// Options steer [Open]. The zero value opens what the usher command would.
type Options struct {
	// Config is a loaded configuration. Nil: it is loaded with Load. An empty
	// *config.Config makes a host without servers, for programs that Spawn.
	Config *config.Config
	// Load says where configuration and state are found.
	Load config.LoadOptions
	// Store keeps logins, secrets, approvals, pins and the catalog, as it is given:
	// see vault.Sealed. With a *vault.Memory nothing at all is written to disk. Nil: the
	// store that the configuration names, by default a
	// sealed SQLite file in the state directory; it is closed with the Host.
	Store vault.Store
	// Keychain may hold the key of the store. Default: the operating system's.
	Keychain vault.Keychain
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
	// First is the account that will be used first, as in [App.Call]. If it is a
	// child, its guard is started while the store is opened. Default: none is.
	First string
	// Transport carries all HTTP. Default: one for all servers.
	Transport http.RoundTripper
	// Exits says that no call is under way any more when Close is called, unless an
	// agent's, and that the process ends right after it. Close then does side by side
	// what is left to do, and leaves to the system what ends with the process anyway.
	Exits bool
}

// App is everything: servers, policy and store. All methods may be used
// concurrently.
type App struct {
	cfg       atomic.Pointer[config.Config] // see Reread
	load      config.LoadOptions
	changing  sync.Mutex // held while the configuration is replaced
	spawning  turns
	dirs      config.Dirs
	store     vault.Store
	owned     bool                   // close the store too
	shared    bool                   // other machines may use the store too
	peer      atomic.Pointer[string] // where other gateways reach this one, see Replica
	keys      *vault.Keys
	principal string
	hosted    *host.Host
	shelf     *shelf
	gate      *policy.Gate
	engine    *auth.Engine
	trail     *vault.Trail // nil: nothing is audited

	placeholders config.Lookup

	started   time.Time
	exits     bool
	spare     *process.Spare      // nil: no guard was started ahead
	transport *upstream.Transport // nil when it belongs to the caller
	public    *upstream.Transport // for what nobody approved; nil as above
	carriers  struct{ any, public http.RoundTripper }
	plain     http.RoundTripper // without credentials, see Card
	rings     rings
	called    activity
	closing   sync.Once

	// What agents see, made when it is first asked for.
	surfaceOnce   sync.Once
	surface       atomic.Pointer[surface.Surface]
	shown         atomic.Pointer[console.Console] // the console, where one is served
	many          manyLogins
	clientVersion string
	bus           *event.Bus[event.Event] // the embedding program's, or one of our own without calls
	log           *slog.Logger
	tracer        trace.Tracer

	// What runs beside requests ends with life.
	life       context.Context
	end        context.CancelFunc
	background sync.WaitGroup
	accounts   accounts
	begun      begunLogins
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
		clientVersion: o.ClientVersion, log: o.Log, tracer: o.Tracer, exits: o.Exits, started: time.Now(),
	}
	h.cfg.Store(o.Config)
	h.accounts.h = h
	if h.bus = o.Events; h.bus == nil {
		h.bus = &event.Bus[event.Event]{}
	}
	h.life, h.end = context.WithCancel(context.Background())
	h.spare = spareFor(&o)
	if h.store == nil {
		if h.store, h.keys, h.shared, err = openStore(ctx, &o, dirs); err != nil {
			h.spare.Close()
			return nil, err
		}
		h.owned = true
	}
	if err := h.wire(ctx, &o); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *App) wire(ctx context.Context, o *Options) error {
	rt := o.Transport
	if rt == nil {
		h.transport, h.public = upstream.NewTransport(), upstream.NewPublicTransport()
		rt = h.transport
	}
	h.plain = rt
	h.engine = auth.New(h.store, &auth.Options{Events: h.bus, Log: o.Log, PublicOnly: h.publicOnly, DiscoveryHosts: h.discoveryHosts})
	h.carriers.any = h.engine.Transport(rt)
	h.carriers.public = h.carriers.any
	if h.public != nil {
		h.carriers.public = h.engine.Transport(h.public)
	}
	h.placeholders = h.lookup(o)
	h.shelf = newShelf(&memory{eras: vault.NewEras(h.store), catalogs: h.store})
	h.hosted = host.New(&host.Options{
		Auth:         &authorizer{h.engine},
		MaxConnected: o.Config.Usher.MaxConnected,
		Memory:       h.shelf,
		Lookup:       h.placeholders,
		Approved:     h.approved,
		Lease:        h.singleton,
		OnNotification: func(k host.Key, m mcp.Message) {
			h.gate.Notified(k, m)
			if s := h.surface.Load(); s != nil {
				s.Notified(k, m)
			}
		},
		OnForget: func(k host.Key) {
			if k.Lane == "" {
				h.gate.Drop(k)
				h.rings.drop(k)
			}
		},
		Connection: h.connection(o),
		Events:     h.bus,
		Log:        o.Log,
		Executable: o.Executable,
		Transport:  h.carriers.any,

		TransportFor: h.Transport,
	})
	h.openTrail()
	h.gate = policy.NewGate(h.hosted, h.store, &policy.Options{
		Config: o.Config, Hook: o.Hook, Lock: projectLock(o), OnCall: h.onCall(o), Log: o.Log,
		Accounts: &h.accounts, Logins: &logins{h}, Tracer: o.Tracer, OnNote: h.pinChanged,
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

// onCall is told of every call that ended, on the way of its answer: it must be
// cheap.
func (h *App) onCall(o *Options) func(policy.Finished) {
	return func(f policy.Finished) {
		h.called.note(f)
		if h.trail != nil {
			h.trail.Add(act(f))
		}
		if o.OnCall != nil {
			o.OnCall(f)
		}
		if o.Events != nil {
			publishCall(o.Events, f)
		}
	}
}

// connection is what every connection starts from.
func (h *App) connection(o *Options) func(host.Key) upstream.Options {
	return func(k host.Key) upstream.Options {
		opt := upstream.Options{
			ClientName: o.ClientName, ClientVersion: o.ClientVersion, Capabilities: o.Capabilities,
			Stderr: h.rings.of(k), Tracer: o.Tracer,
		}
		if k.Server == auth.ParseAccount("", o.First).Server {
			opt.Spare = h.spare
		}
		if s := h.surface.Load(); s != nil {
			l := s.Lane(k)
			opt.Capabilities, opt.Version, opt.OnRequest, opt.Greet = l.Capabilities, l.Version, l.Ask, l.Greet
		}
		return opt
	}
}

// spareFor starts the guard around the child that will be used first. A guard knows
// nothing and does nothing before it is told to, so it does not matter yet whether
// policy lets the child start.
func spareFor(o *Options) *process.Spare {
	srv, ok := o.Config.Server(auth.ParseAccount("", o.First).Server)
	if !ok || srv.Transport != config.TransportStdio || srv.Disabled || srv.Problem != nil {
		return nil
	}
	return process.NewSpare(o.Executable, filepath.Base(srv.Command))
}

// Config is the configuration in use: the one the host was opened with, or the one
// that Reread found last.
func (h *App) Config() *config.Config { return h.cfg.Load() }

// Dirs are the places where state is kept.
func (h *App) Dirs() config.Dirs { return h.dirs }

// Gate is the policy in front of the servers, for surfaces that need more than
// the methods of Host.
func (h *App) Gate() *policy.Gate { return h.gate }

// Close ends all connections, stops all children and keeps their last words.
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
		h.spare.Close()
		h.closeServers()
		if h.engine != nil {
			err = errors.Join(err, h.engine.Close())
		}
		if _, inMemory := vault.Unsealed(h.store).(*vault.Memory); !inMemory {
			err = errors.Join(err, h.rings.save(h.logDir()))
		}
		if h.transport != nil {
			h.transport.CloseIdleConnections()
			h.public.CloseIdleConnections()
		}
		if h.owned {
			err = errors.Join(err, h.store.Close())
		}
	})
	return err
}

// closeServers stops the children, and ends the audit trail when the last act is in
// it: calls that end because their server does are acts too.
func (h *App) closeServers() {
	var trail sync.WaitGroup
	if h.trail != nil && h.exits && h.surface.Load() == nil {
		trail.Go(h.trail.Close) // nobody calls any more: it is written while the children leave
	}
	if h.hosted != nil {
		h.hosted.Close()
		h.shelf.close()
	}
	trail.Wait()
	if h.trail != nil {
		h.trail.Close()
	}
}

// Executable returns what Options.Executable should be in a program whose main
// function calls process.Main first.
func Executable() string { return process.Self() }
