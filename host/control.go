package host

import (
	"context"
	"slices"

	"github.com/usher-mcp/usher/config"
)

// Stop closes all connections of a server now and resets its supervision state.
// In-flight requests fail. The server stays registered: the next request connects.
func (h *Host) Stop(name string) error {
	units, err := h.named(name)
	if err != nil {
		return err
	}
	var all []*live
	for _, u := range units {
		if l := u.renew(false); l != nil {
			all = append(all, l)
		}
	}
	shutAll(all)
	return nil
}

// Reload takes the connections of a server out of use and clears its breaker,
// restart budget, ejection and lists. In-flight requests finish on the old
// connection, see Options.Drain; the next request reconnects.
func (h *Host) Reload(ctx context.Context, name string) error {
	units, err := h.named(name)
	if err != nil {
		return err
	}
	for _, u := range units {
		if l := u.renew(false); l != nil {
			l.drain(h.opt.Drain)
		}
	}
	return ctx.Err()
}

// Reconnect takes the connections of one account of one principal out of use, with all
// its lanes, so that the next request connects with the login that is there now.
// Requests in flight finish on the old connection. Circuits, restart budgets and
// ejections stay as they are, and so does everything of other keys: a login says
// nothing about the health of a server, and an agent can repeat it.
func (h *Host) Reconnect(ctx context.Context, k Key) error {
	k = k.normal()
	units, err := h.named(k.Server)
	if err != nil {
		return err
	}
	for _, u := range units {
		if u.key.Principal != k.Principal || u.key.Account != k.Account {
			continue
		}
		if l := u.reconnect(); l != nil {
			l.drain(h.opt.Drain)
		}
	}
	return ctx.Err()
}

// Release closes the connection of one key and forgets the key, for example when the
// agent's session has ended. In-flight requests finish.
func (h *Host) Release(k Key) {
	k = k.normal()
	h.mu.Lock()
	reg := h.servers[k.Server]
	var u *unit
	if reg != nil {
		u = reg.units[k]
		delete(reg.units, k)
	}
	h.mu.Unlock()
	if u == nil {
		return
	}
	if l := u.renew(true); l != nil {
		l.drain(h.opt.Drain)
	}
}

// ReleaseAccount ends all connections of an account, whatever their session, and
// forgets them, as when the account was logged out. Requests in flight finish.
func (h *Host) ReleaseAccount(k Key) {
	k = k.normal()
	h.mu.Lock()
	var gone []Key
	if reg := h.servers[k.Server]; reg != nil {
		for have := range reg.units {
			if have.Principal == k.Principal && have.Account == k.Account {
				gone = append(gone, have)
			}
		}
	}
	h.mu.Unlock()
	for _, have := range gone {
		h.Release(have)
	}
}

func (h *Host) named(name string) ([]*unit, error) {
	h.mu.Lock()
	reg := h.servers[name]
	h.mu.Unlock()
	if reg == nil {
		return nil, unknownServer(name, h.Names())
	}
	return h.unitsOf(reg), nil
}

// Names returns the names of all registered servers, sorted.
func (h *Host) Names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := make([]string, 0, len(h.servers))
	for name := range h.servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Named returns the name of a registered server as it is kept here, false when there is
// none. A key with that very text is found without comparing it letter by letter, and
// keeps no request in memory that the name was part of.
func (h *Host) Named(name string) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	reg := h.servers[name]
	if reg == nil {
		return "", false
	}
	return reg.srv.Name, true
}

// Server returns the definition of a registered server.
func (h *Host) Server(name string) (config.Server, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	reg := h.servers[name]
	if reg == nil {
		return config.Server{}, false
	}
	return *reg.srv, true
}

// Apply makes the registrations those of a configuration: new servers are
// registered, missing ones removed, changed ones replaced; the others are left
// alone with their connections. In-flight requests finish. Servers that are not
// lazy connect in the background. It returns the names that changed in any way,
// sorted.
func (h *Host) Apply(_ context.Context, c *config.Config) []string {
	want := map[string]config.Server{}
	for _, s := range c.Servers {
		want[s.Name] = s.WithDefaults()
	}
	var changed []string
	var eager []Key
	var old []*registration
	h.mu.Lock()
	for name, reg := range h.servers {
		if s, ok := want[name]; !ok || !s.Same(*reg.srv) {
			delete(h.servers, name)
			old = append(old, reg)
			changed = append(changed, name)
		}
	}
	for name, s := range want {
		if h.servers[name] != nil || h.closed {
			continue
		}
		h.servers[name] = register(&s)
		if !slices.Contains(changed, name) {
			changed = append(changed, name)
		}
		if !s.IsLazy() && s.Problem == nil && !s.Disabled {
			eager = append(eager, Key{Server: name})
		}
	}
	h.mu.Unlock()
	if c.Usher.MaxConnected > 0 {
		h.places.Resize(c.Usher.MaxConnected)
	}
	for _, reg := range old {
		h.unregister(reg.srv.Name, reg)
	}
	for _, k := range eager {
		// Its failure shows in the state of the server.
		h.spawn(func() { _ = h.connect(h.life, k) })
	}
	slices.Sort(changed)
	return changed
}

// Unknown explains that no server of that name is registered and which may be
// meant.
func (h *Host) Unknown(name string) error { return unknownServer(name, h.Names()) }
