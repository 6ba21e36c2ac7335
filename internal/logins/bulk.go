package logins

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
)

// bulkLogins are the logins that a console or the control socket began.
type bulkLogins struct {
	mu     sync.Mutex // guards driver
	driver *bulk.Driver
}

// Running is the driver of the logins that Start began; nil before the first.
func (m *Manager) Running() *bulk.Driver {
	m.bulk.mu.Lock()
	defer m.bulk.mu.Unlock()
	return m.bulk.driver
}

// Start begins the logins of the named accounts, or of all servers, that mode selects,
// and returns at once.
func (m *Manager) Start(names []string, mode bulk.Mode) error {
	for _, name := range names {
		server, _ := config.SplitAccount(name)
		if err := m.config().CheckUsable(server); err != nil {
			return err
		}
	}
	targets, err := m.Targets(m.life, names)
	if err != nil {
		return err
	}
	d := m.Driver()
	d.Queue(targets) // so that readers see them now
	m.background.Go(func() { d.Prepare(m.life, targets, mode, m.redirect(), nil) })
	return nil
}

// redirect says how answers come back: through the gateway where browsers reach it from
// outside, else to this machine.
func (m *Manager) redirect() bulk.Redirect {
	if public := m.config().Usher.Gateway.PublicURL; public != "" {
		return bulk.Redirect{URI: callbackAddress(public)}
	}
	return bulk.Redirect{Listen: true}
}

// CallbackPath is where a gateway serves the answers of consent pages.
const CallbackPath = "/oauth/callback"

// callbackAddress is where a gateway takes the answers of consent pages.
func callbackAddress(public string) string { return strings.TrimRight(public, "/") + CallbackPath }

// Driver makes the driver when it is first needed. Connections use a login as soon as
// the person is done.
func (m *Manager) Driver() *bulk.Driver {
	m.bulk.mu.Lock()
	defer m.bulk.mu.Unlock()
	if m.bulk.driver != nil {
		return m.bulk.driver
	}
	d := bulk.New(bulk.NewEngine(m.engine, &bulk.EngineOptions{Principal: m.principal, Where: "the console"}), &bulk.Options{Bulk: m.config().Usher.Bulk})
	m.bulk.driver = d
	sub := d.Subscribe()
	m.background.Go(func() {
		defer func() { _ = d.Close() }() // pending logins stay pending in the store
		defer sub.Close()
		for e := range sub.All(m.life) {
			if e.Phase != bulk.PhaseConnected {
				continue
			}
			a := auth.ParseAccount(m.principal, e.Server)
			_ = m.Reconnect(m.life, a) // the next call connects anyway
			m.list(m.life, a)          // shows that it works, and what it offers
		}
	})
	return d
}

// Targets are the servers that one can log in to: all, or those named. One that cannot
// be used comes with its reason, so that it is reported among the rest.
func (m *Manager) Targets(ctx context.Context, names []string) ([]bulk.Target, error) {
	if len(names) == 0 {
		for _, srv := range m.definitions() {
			if srv.Transport != config.TransportStdio && !srv.Disabled && srv.Problem == nil {
				names = append(names, srv.Name)
			}
		}
	}
	var targets []bulk.Target
	for _, name := range names {
		account, err := m.Account(name)
		if err != nil {
			return nil, err
		}
		srv, err := m.Target(ctx, account)
		if err != nil {
			_, configured := m.config().Server(account.Server)
			if _, hosted := m.hosted.Server(account.Server); !configured && !hosted {
				return nil, err
			}
			srv = config.Server{Name: account.Server, Problem: err}
		}
		targets = append(targets, bulk.Target{Account: account, Server: srv})
	}
	return targets, nil
}

// definitions are those of all servers: the configured ones in their order, then those
// that were spawned.
func (m *Manager) definitions() []config.Server {
	cfg := m.config()
	all := slices.Clone(cfg.Servers)
	for _, name := range m.hosted.Names() {
		if _, configured := cfg.Server(name); configured {
			continue
		}
		if srv, ok := m.hosted.Server(name); ok {
			all = append(all, srv)
		}
	}
	return all
}
