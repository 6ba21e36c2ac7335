package app

import (
	"context"
	"slices"
	"sync"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
)

// Spawn registers a server that no file has and, unless it is lazy, connects, so
// that a broken definition fails now. A failed Spawn leaves nothing behind, and with
// SpawnOptions.Replace the server that was there. A server that wants a login is
// registered, and its status is needs_auth.
//
// Pins and budgets belong to the name: tools of a replacement that differ from those
// of its predecessor are blocked until somebody accepts them.
func (h *App) Spawn(ctx context.Context, srv config.Server, opt *host.SpawnOptions) error {
	srv = srv.WithDefaults()
	if err := host.CheckDefinition(srv); err != nil {
		return err
	}
	if err := h.gate.MayRegister(ctx, h.caller(), srv.Name); err != nil {
		return err
	}
	done, err := h.spawning.turn(ctx, srv.Name)
	if err != nil {
		return err
	}
	defer done()
	return h.spawn(ctx, srv, opt)
}

// spawn needs the turn of the name. The rules of a server are there before anybody
// can call it.
func (h *App) spawn(ctx context.Context, srv config.Server, opt *host.SpawnOptions) error {
	before, replaces := h.hosted.Server(srv.Name)
	if replaces && (opt == nil || !opt.Replace) {
		return h.hosted.Spawn(ctx, srv, opt) // fails, and says why
	}
	h.gate.Register(srv)
	err := h.hosted.Spawn(ctx, srv, opt)
	switch {
	case err == nil:
		h.unconfigure(srv.Name)
		h.gate.Forget(srv.Name) // what was kept of the old one meanwhile
	case replaces:
		h.gate.Register(before)
	default:
		h.gate.Unregister(srv.Name)
	}
	return err
}

// Remove ends the connections of a server now and removes it, so that its name is
// free. Its logins and pins stay in the store. A server that a file defines is back
// after [App.Reread].
func (h *App) Remove(name string) error {
	done, err := h.spawning.turn(h.life, name)
	if err != nil {
		return host.ErrClosed
	}
	defer done()
	if err := h.hosted.Remove(name); err != nil {
		return err
	}
	h.gate.Unregister(name)
	h.unconfigure(name)
	return nil
}

// unconfigure takes a server out of the configuration in use: it was removed, or the
// program has replaced it.
func (h *App) unconfigure(name string) {
	h.changing.Lock()
	defer h.changing.Unlock()
	old := h.Config()
	if _, ok := old.Server(name); !ok {
		return
	}
	next := *old
	next.Servers = slices.DeleteFunc(slices.Clone(old.Servers), func(s config.Server) bool { return s.Name == name })
	h.cfg.Store(&next)
}

// SetHook replaces the policy of the embedding program for the requests that begin from
// now on; nil removes it. Agents hear that lists have changed.
func (h *App) SetHook(hook policy.Hook) {
	h.gate.SetHook(hook)
	if s := h.surface.Load(); s != nil {
		s.Reconfigured(h.hosted.Names(), profiles(h.Config()))
	}
}

// Stop ends the connections of a server now; the registration stays, and the next
// request connects again. To free the name, see [App.Remove].
func (h *App) Stop(name string) error {
	h.gate.Forget(name)
	return h.hosted.Stop(name)
}

// Reload drops the connections of a server and clears breaker, restart budget,
// ejection and cache. It is the way back for an ejected server.
func (h *App) Reload(ctx context.Context, name string) error {
	h.gate.Forget(name)
	return h.hosted.Reload(ctx, name)
}

// turns lets one caller at a time change what a name stands for. The zero value is
// ready to use.
type turns struct {
	mu   sync.Mutex // guards busy
	busy map[string]chan struct{}
}

// turn waits until nobody else changes name. Call done afterwards.
func (t *turns) turn(ctx context.Context, name string) (done func(), err error) {
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
