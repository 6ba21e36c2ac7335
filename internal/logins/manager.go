// Package logins connects the OAuth engine with servers, policy and the people who log
// in:
//
//	m := logins.New(&logins.Options{Engine: engine, Hosted: hosted, …})
//	a, err := m.Account("github@work")
//	srv, err := m.Target(ctx, a)     // ready for auth.Engine.Begin
//	err = m.Reconnect(ctx, a)        // after a login
//
// Manager serves people (terminal, console, control socket), AgentLogins agents through
// policy.Gate, Accounts says which named accounts exist. A login changes the connections
// of its own account only. Secrets stay in the engine.
package logins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// Options are what a Manager connects. All but Log are needed.
type Options struct {
	Engine    *auth.Engine
	Hosted    *host.Host
	Store     vault.Store
	Principal string // whose logins people see
	// Gate returns the policy in front of the servers.
	Gate func() *policy.Gate
	// Config returns the configuration in use.
	Config func() *config.Config
	// Approved returns an error for a definition that a person has to approve first.
	Approved func(ctx context.Context, srv config.Server) error
	// Lookup fills in placeholders.
	Lookup config.Lookup
	// Getenv reads environment variables.
	Getenv func(name string) string
	// Forget drops what is kept in memory for an account that is gone.
	Forget func(k host.Key)
	// List reads the tools of an account after a login, to show that it works.
	List   func(ctx context.Context, a auth.Account)
	Events *event.Bus[event.Event]
	Log    *slog.Logger
	// Life ends what runs beside requests; Background is waited for after that.
	Life       context.Context
	Background *sync.WaitGroup
}

// Manager are the logins of one process. All methods may be used concurrently.
type Manager struct {
	engine     *auth.Engine
	hosted     *host.Host
	store      vault.Store
	principal  string
	gate       func() *policy.Gate
	config     func() *config.Config
	approved   func(ctx context.Context, srv config.Server) error
	lookup     config.Lookup
	getenv     func(name string) string
	forget     func(k host.Key)
	list       func(ctx context.Context, a auth.Account)
	bus        *event.Bus[event.Event]
	log        *slog.Logger
	life       context.Context
	background *sync.WaitGroup

	accounts Accounts
	pending  pendingLogins
	bulk     bulkLogins
}

// New connects the parts. It starts nothing.
func New(o *Options) *Manager {
	m := &Manager{
		engine: o.Engine, hosted: o.Hosted, store: o.Store, principal: o.Principal, gate: o.Gate, config: o.Config,
		approved: o.Approved, lookup: o.Lookup, getenv: o.Getenv, forget: o.Forget, list: o.List, bus: o.Events,
		log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), life: o.Life, background: o.Background,
	}
	m.accounts.m = m
	return m
}

// Accounts are the named accounts that exist, for a gate.
func (m *Manager) Accounts() *Accounts { return &m.accounts }

// ForAgents are the logins that agents begin through a gate.
func (m *Manager) ForAgents() *AgentLogins { return &AgentLogins{m} }

// WatchStore publishes the logins that other processes finish, in the background.
func (m *Manager) WatchStore() {
	states := m.bus.Subscribe(0)
	m.background.Go(func() { m.ForAgents().watchStore(states) })
}

// Account reads "server" or "server@label" of the manager's principal, as a person
// writes it.
func (m *Manager) Account(text string) (auth.Account, error) {
	server, label, err := config.ParseAccount(text)
	return auth.Account{Principal: m.principal, Server: server, Label: label}, err
}

// DefaultAccount is the account without a label of the manager's principal at a server.
func (m *Manager) DefaultAccount(server string) auth.Account {
	return auth.Account{Principal: m.principal, Server: server}
}

// Target returns the definition behind an account with its placeholders filled in,
// ready to log in to.
func (m *Manager) Target(ctx context.Context, a auth.Account) (config.Server, error) {
	srv, ok := m.hosted.Server(a.Server)
	if !ok {
		return config.Server{}, m.hosted.Unknown(a.Server)
	}
	if a.Label != "" {
		if err := config.CheckLabel(a.Label); err != nil {
			return config.Server{}, err
		}
	}
	if srv.Transport == config.TransportStdio {
		return config.Server{}, fmt.Errorf("%s is a stdio server: its credentials come from its environment, there is nothing to log in to", a.Server)
	}
	if err := m.approved(ctx, srv); err != nil {
		return config.Server{}, &host.Error{Server: a.Server, Err: fmt.Errorf("%w: %w", host.ErrHeldBack, err), Action: host.ActionApprove}
	}
	return srv.Resolve(ctx, m.lookup)
}

// Load reads the login of an account into memory, where its server may need one.
func (m *Manager) Load(ctx context.Context, k host.Key) {
	if srv, ok := m.hosted.Server(k.Server); ok && srv.Transport != config.TransportStdio {
		m.engine.Has(ctx, account(k))
	}
}

// Reconnect makes the connections of an account use its new login. Other accounts keep
// their connections.
func (m *Manager) Reconnect(ctx context.Context, a auth.Account) error {
	k := host.Key{Principal: a.Principal, Server: a.Server, Account: a.Label}
	m.gate().Relogin(k)
	return m.hosted.Reconnect(ctx, k)
}

// Logout ends a login. Clients connected with it have to log in again; everything
// that was kept for a named account is removed.
func (m *Manager) Logout(ctx context.Context, a auth.Account) (*auth.Logout, error) {
	out, err := m.engine.Logout(ctx, a)
	if err != nil {
		return nil, err
	}
	principal := cmp.Or(a.Principal, vault.Local)
	if a.Label == "" {
		if err := m.Reconnect(ctx, a); err != nil && !errors.Is(err, host.ErrUnknownServer) {
			out.Problems = append(out.Problems, err)
		}
		return out, nil
	}
	m.accounts.remove(principal, a.Server, a.Label)
	m.forget(host.Key{Principal: principal, Server: a.Server, Account: a.Label})
	for _, err := range []error{
		vault.NewCatalog(m.store, principal).Forget(ctx, a.String()),
		m.gate().Pins(principal).Forget(ctx, a.String()),
	} {
		if err != nil && !errors.Is(err, vault.ErrNotFound) {
			out.Problems = append(out.Problems, err)
		}
	}
	return out, nil
}
