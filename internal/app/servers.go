package app

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/serverlog"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/status"
)

// Servers starts, stops and observes servers.
type Servers struct{ h *App }

// Servers starts, stops and observes servers.
func (h *App) Servers() Servers { return Servers{h} }

// Spawn registers a server that no file has and, unless it is lazy, connects, so
// that a broken definition fails now. A failed Spawn leaves nothing behind, and with
// SpawnOptions.Replace the server that was there. A server that requires login is
// registered, and its status is needs_auth.
//
// Pins and budgets belong to the name: tools of a replacement that differ from those
// of its predecessor are blocked until somebody accepts them.
func (s Servers) Spawn(ctx context.Context, srv config.Server, opt *host.SpawnOptions) error {
	srv = srv.WithDefaults()
	if err := host.CheckDefinition(srv); err != nil {
		return err
	}
	if err := s.h.gate.MayRegister(ctx, s.h.self, srv.Name); err != nil {
		return err
	}
	done, err := s.h.spawning.lock(ctx, srv.Name)
	if err != nil {
		return err
	}
	defer done()
	return s.spawn(ctx, srv, opt)
}

// spawn needs the lock of the name. The rules of a server are there before anybody
// can call it.
func (s Servers) spawn(ctx context.Context, srv config.Server, opt *host.SpawnOptions) error {
	before, replaces := s.h.hosted.Server(srv.Name)
	if replaces && (opt == nil || !opt.Replace) {
		return s.h.hosted.Spawn(ctx, srv, opt) // fails, and says why
	}
	s.h.gate.Register(srv)
	err := s.h.hosted.Spawn(ctx, srv, opt)
	switch {
	case err == nil:
		s.unconfigure(srv.Name)
		s.h.gate.Forget(srv.Name) // what was kept of the old one meanwhile
	case replaces:
		s.h.gate.Register(before)
	default:
		s.h.gate.Unregister(srv.Name)
	}
	return err
}

// Remove ends the connections of a server now and removes it, so that its name is
// free. Its logins and pins stay in the store. A server that a file defines is back
// after [App.ReloadConfig].
func (s Servers) Remove(name string) error {
	done, err := s.h.spawning.lock(s.h.life, name)
	if err != nil {
		return host.ErrClosed
	}
	defer done()
	if err := s.h.hosted.Remove(name); err != nil {
		return err
	}
	s.h.gate.Unregister(name)
	s.unconfigure(name)
	return nil
}

// unconfigure takes a server out of the configuration in use: it was removed, or the
// program has replaced it.
func (s Servers) unconfigure(name string) {
	s.h.changing.Lock()
	defer s.h.changing.Unlock()
	old := s.h.Config()
	if _, ok := old.Server(name); !ok {
		return
	}
	next := *old
	next.Servers = slices.DeleteFunc(slices.Clone(old.Servers), func(srv config.Server) bool { return srv.Name == name })
	s.h.cfg.Store(&next)
}

// Stop ends the connections of a server now; the registration stays, and the next
// request connects again. To free the name, see [Servers.Remove].
func (s Servers) Stop(name string) error {
	s.h.gate.Forget(name)
	return s.h.hosted.Stop(name)
}

// Reload drops the connections of a server and clears breaker, restart budget,
// ejection and cache. It is the way back for an ejected server.
func (s Servers) Reload(ctx context.Context, name string) error {
	s.h.gate.Forget(name)
	return s.h.hosted.Reload(ctx, name)
}

// Report is the status of this process, without its store.
func (s Servers) Report() status.Report {
	out := status.Report{PID: os.Getpid(), Started: s.h.started, Servers: []status.Server{}, Budgets: limitedBudgets(s.h.gate)}
	for _, one := range s.h.Status().Servers {
		k := host.Key{Principal: one.Principal, Server: one.Name, Account: one.Account}
		out.Servers = append(out.Servers, status.Server{ServerStatus: one, LastCall: s.h.calls.LastCall(k)})
	}
	return out
}

// limitedBudgets are the budgets that have a limit.
func limitedBudgets(g *policy.Gate) []policy.BudgetStatus {
	out := []policy.BudgetStatus{}
	for _, b := range g.Budgets() {
		if b.RunLimit > 0 || b.WindowLimit > 0 {
			out = append(out, b)
		}
	}
	return out
}

// nameLocks lets one caller at a time change the server with a name. The zero value is
// ready to use.
type nameLocks struct {
	mu   sync.Mutex // guards busy
	busy map[string]chan struct{}
}

// lock waits until no other caller changes name. Call done afterwards.
func (t *nameLocks) lock(ctx context.Context, name string) (done func(), err error) {
	for {
		t.mu.Lock()
		wait, busy := t.busy[name]
		if !busy {
			if t.busy == nil {
				t.busy = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.busy[name] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.busy, name)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Logs yields what a server wrote to standard error: live where this host runs it,
// otherwise the lines that an earlier process saved.
func (s Servers) Logs(ctx context.Context, account string, follow bool) (iter.Seq[host.LogLine], error) {
	k, err := s.h.key(account)
	if err != nil {
		return nil, err
	}
	live, err := s.h.hosted.Logs(ctx, k, follow)
	if err != nil || follow {
		return live, err
	}
	for range live {
		return live, nil
	}
	return serverlog.Saved(logDir(s.h.dirs), k.Name())
}

func logDir(dirs config.Dirs) string { return filepath.Join(dirs.State, "logs") }
