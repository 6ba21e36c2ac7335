package usher

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/console"
)

// consoleLogins are the logins that a console began.
type consoleLogins struct {
	mu     sync.Mutex // guards driver
	driver *bulk.Driver
}

// Logins says how they stand.
func (w *consoleWorld) Logins() console.Driver {
	w.logins.mu.Lock()
	defer w.logins.mu.Unlock()
	if w.logins.driver == nil {
		return nil
	}
	return w.logins.driver
}

// Login begins the login of one account, or of all servers that have none, and
// returns at once.
func (w *consoleWorld) Login(account string) error {
	mode := bulk.ModeAll
	var names []string
	if account == "" {
		mode = bulk.ModeMissing
	} else {
		if _, err := w.h.hostedKey(w.h.Account(account).Server); err != nil {
			return err
		}
		names = []string{account}
	}
	targets, err := w.h.LoginTargets(w.h.life, names)
	if err != nil {
		return err
	}
	d := w.driver()
	w.h.background.Go(func() { d.Prepare(w.h.life, targets, mode, w.redirect(), nil) })
	return nil
}

// redirect says how answers come back: through the gateway where browsers reach it
// from outside, else to this machine.
func (w *consoleWorld) redirect() bulk.Redirect {
	if public := w.h.Config().Usher.Gateway.PublicURL; public != "" {
		return bulk.Redirect{URI: callbackAddress(public)}
	}
	return bulk.Redirect{Listen: true}
}

// callbackAddress is where a gateway takes the answers of consent pages.
func callbackAddress(public string) string { return strings.TrimRight(public, "/") + CallbackPath }

// driver makes the driver when it is first needed, and lets what is connected use
// logins as soon as a person is done.
func (w *consoleWorld) driver() *bulk.Driver {
	l := &w.logins
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.driver != nil {
		return l.driver
	}
	l.driver = bulk.New(bulk.NewEngine(w.h.engine, &bulk.EngineOptions{Principal: w.h.principal, Where: "the console"}), &bulk.Options{Bulk: w.h.Config().Usher.Bulk})
	d, sub := l.driver, l.driver.Subscribe()
	w.h.background.Go(func() {
		defer func() { _ = d.Close() }() // logins that wait go on to wait in the store
		defer sub.Close()
		for e := range sub.All(w.h.life) {
			if e.Phase != bulk.PhaseConnected {
				continue
			}
			account := w.h.Account(e.Server)
			_ = w.h.Relogin(w.h.life, account)   // the next call connects anyway
			_, _ = w.h.Tools(w.h.life, e.Server) // shows that it works, and what it offers
		}
	})
	return d
}

// definitions are those of all servers: the configured ones in their order, then
// those that were spawned.
func (h *Host) definitions() []config.Server {
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
func (h *Host) LoginTargets(ctx context.Context, names []string) ([]bulk.Target, error) {
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
