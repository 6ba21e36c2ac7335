package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/config"
)

// SpawnOptions steer Spawn. The zero value works.
type SpawnOptions struct {
	// Lazy registers only and connects with the first request, also where the
	// definition does not say so. How long the connection is kept after that is
	// decided by the definition.
	Lazy bool
	// Replace puts the definition in the place of a server with the same name.
	// Requests in flight finish on the old connections. When Spawn fails the old
	// server stays as it was.
	Replace bool
	// Key is the principal and account that an eager connection is for. Default
	// the local user.
	Key Key
}

// Spawn registers a server and, unless it is lazy, connects to it, so that a broken
// definition fails now. A failed Spawn leaves nothing behind. A server that
// requires login is not broken: it is registered in the state [NeedsAuth].
func (h *Host) Spawn(ctx context.Context, srv config.Server, opt *SpawnOptions) error {
	if opt == nil {
		opt = &SpawnOptions{}
	}
	srv = srv.WithDefaults()
	if err := CheckDefinition(srv); err != nil {
		return err
	}
	reg, old, err := h.register(srv, opt)
	if err != nil {
		return err
	}
	if !reg.lazy {
		k := opt.Key
		k.Server = srv.Name
		if err := h.connect(ctx, k); err != nil && !errors.Is(err, ErrNeedsLogin) {
			h.restore(srv.Name, reg, old)
			return err
		}
	}
	if old != nil {
		h.unregister(srv.Name, old)
	}
	return nil
}

// Register registers a server without connecting to it. Unlike a lazy Spawn it does
// not make the server a lazy one.
func (h *Host) Register(srv config.Server) error {
	srv = srv.WithDefaults()
	if err := CheckDefinition(srv); err != nil {
		return err
	}
	_, _, err := h.register(srv, &SpawnOptions{})
	return err
}

// CheckDefinition reports what makes it impossible to spawn a definition: an
// [ErrInvalid], or nil.
func CheckDefinition(srv config.Server) error {
	fail := func(text, hint string) error {
		return &Error{Op: "spawn", Server: srv.Name, Err: &unknownError{what: ErrInvalid, text: text}, Advice: hint}
	}
	switch {
	case srv.Name == "":
		return &Error{Err: &unknownError{what: ErrInvalid, text: "spawn: name is empty"}, Advice: "give the server a name"}
	case srv.Transport == config.TransportStdio && srv.Command == "":
		return fail("command is empty", "set command, or url")
	case srv.Transport != config.TransportStdio && srv.URL == "":
		return fail("url is empty", "set url, or command")
	}
	if err := config.CheckName(srv.Name); err != nil {
		return &Error{Server: srv.Name, Err: &unknownError{what: ErrInvalid, text: fmt.Sprintf("spawn: %v", err)}, Advice: "choose another name"}
	}
	return nil
}

// register adds a registration; old is the one that it replaced, nil for none.
func (h *Host) register(srv config.Server, opt *SpawnOptions) (reg, old *registration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, ErrClosed
	}
	old = h.servers[srv.Name]
	if old != nil && !opt.Replace {
		return nil, nil, &Error{Op: "spawn", Server: srv.Name, Err: ErrExists, Advice: "choose another name, replace it, or remove it first"}
	}
	reg = register(&srv)
	reg.lazy = reg.lazy || opt.Lazy
	h.servers[srv.Name] = reg
	return reg, old, nil
}

// restore undoes a registration that failed, unless another one has taken its place.
func (h *Host) restore(name string, reg, old *registration) {
	h.mu.Lock()
	back := old != nil && !h.closed && h.servers[name] == reg
	if back {
		h.servers[name] = old
	}
	h.mu.Unlock()
	h.unregister(name, reg)
	if old != nil && !back {
		h.unregister(name, old)
	}
}

// Remove ends all connections of a server now and removes its registration. Requests
// in flight fail. The name is free again when Remove returns.
func (h *Host) Remove(name string) error {
	h.mu.Lock()
	reg := h.servers[name]
	delete(h.servers, name)
	h.mu.Unlock()
	if reg == nil {
		return unknownServer(name, h.Names())
	}
	var all []*live
	for _, u := range h.unitsOf(reg) {
		if l := u.renew(true); l != nil {
			all = append(all, l)
		}
	}
	shutAll(all)
	return nil
}

// Lazy reports whether a registered server connects on its first request only.
func (h *Host) Lazy(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	reg := h.servers[name]
	return reg != nil && reg.lazy
}
