package app

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/console"
)

// manyLogins are the logins that a console or the control socket began.
type manyLogins struct {
	mu     sync.Mutex // guards driver
	driver *bulk.Driver
}

// Logins says how they stand.
func (w *consoleWorld) Logins() console.LoginDriver {
	w.h.many.mu.Lock()
	defer w.h.many.mu.Unlock()
	if w.h.many.driver == nil {
		return nil
	}
	return w.h.many.driver
}

// Login begins the login of one account, or of all servers that have none, and
// returns at once.
func (w *consoleWorld) Login(account string) error {
	if account == "" {
		return w.h.beginLogins(nil, bulk.ModeMissing)
	}
	return w.h.beginLogins([]string{account}, bulk.ModeAll)
}

// beginLogins begins the logins of the named accounts, or of all servers, that mode
// selects, and returns at once.
func (h *App) beginLogins(names []string, mode bulk.Mode) error {
	for _, account := range names {
		if _, err := h.hostedKey(h.Account(account).Server); err != nil {
			return err
		}
	}
	targets, err := h.LoginTargets(h.life, names)
	if err != nil {
		return err
	}
	d := h.loginDriver()
	d.Queue(targets) // so that readers see them now
	h.background.Go(func() { d.Prepare(h.life, targets, mode, h.loginRedirect(), nil) })
	return nil
}

// loginRedirect says how answers come back: through the gateway where browsers reach it
// from outside, else to this machine.
func (h *App) loginRedirect() bulk.Redirect {
	if public := h.Config().Usher.Gateway.PublicURL; public != "" {
		return bulk.Redirect{URI: callbackAddress(public)}
	}
	return bulk.Redirect{Listen: true}
}

// callbackAddress is where a gateway takes the answers of consent pages.
func callbackAddress(public string) string { return strings.TrimRight(public, "/") + CallbackPath }

// loginDriver makes the driver when it is first needed, and lets what is connected use
// logins as soon as a person is done.
func (h *App) loginDriver() *bulk.Driver {
	l := &h.many
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.driver != nil {
		return l.driver
	}
	l.driver = bulk.New(bulk.NewEngine(h.engine, &bulk.EngineOptions{Principal: h.principal, Where: "the console"}), &bulk.Options{Bulk: h.Config().Usher.Bulk})
	d, sub := l.driver, l.driver.Subscribe()
	h.background.Go(func() {
		defer func() { _ = d.Close() }() // logins that wait go on to wait in the store
		defer sub.Close()
		for e := range sub.All(h.life) {
			if e.Phase != bulk.PhaseConnected {
				continue
			}
			account := h.Account(e.Server)
			_ = h.Relogin(h.life, account)   // the next call connects anyway
			_, _ = h.Tools(h.life, e.Server) // shows that it works, and what it offers
		}
	})
	return d
}

// definitions are those of all servers: the configured ones in their order, then
// those that were spawned.
func (h *App) definitions() []config.Server {
	cfg := h.Config()
	all := slices.Clone(cfg.Servers)
	for _, name := range h.hosted.Names() {
		if _, configured := cfg.Server(name); configured {
			continue
		}
		if srv, ok := h.hosted.Server(name); ok {
			all = append(all, srv)
		}
	}
	return all
}

// LoginTargets are the servers that one can log in to: all, or those named. One
// that cannot be used comes with its reason, so that it is reported among the rest.
func (h *App) LoginTargets(ctx context.Context, names []string) ([]bulk.Target, error) {
	if len(names) == 0 {
		for _, srv := range h.definitions() {
			if srv.Transport != config.TransportStdio && !srv.Disabled && srv.Problem == nil {
				names = append(names, srv.Name)
			}
		}
	}
	var targets []bulk.Target
	for _, name := range names {
		account := h.Account(name)
		srv, err := h.Target(ctx, account)
		if err != nil {
			_, configured := h.Config().Server(account.Server)
			if _, hosted := h.hosted.Server(account.Server); !configured && !hosted {
				return nil, err
			}
			srv = config.Server{Name: account.Server, Problem: err}
		}
		targets = append(targets, bulk.Target{Account: account, Server: srv})
	}
	return targets, nil
}
