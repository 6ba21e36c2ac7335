package app

import (
	"context"
	"iter"
	"slices"

	"github.com/usher-mcp/usher/host"
)

// Discover yields the tools of all servers, or of those named, as they come: one row a tool, or one
// with the reason why a server has none to show. Tools that differ from their pins are
// marked. Servers that policy would not start are left out, and so are tools that it
// forbids.
func (h *App) Discover(ctx context.Context, servers ...string) iter.Seq[host.Row] {
	var keys []host.Key
	for _, name := range h.hosted.Names() {
		if len(servers) > 0 && !slices.Contains(servers, name) {
			continue
		}
		k := host.Key{Principal: h.principal, Server: name}
		if srv, ok := h.hosted.Server(name); ok && !srv.Disabled && h.gate.Allowed(ctx, h.caller(), k, "") == nil {
			keys = append(keys, k)
		}
	}
	return func(yield func(host.Row) bool) {
		var m marker
		for row := range h.hosted.Discover(ctx, keys) {
			if row.Tool == "" {
				if !yield(row) {
					return
				}
				continue
			}
			if err := m.read(ctx, h, row); err != nil && !yield(host.Row{Server: row.Server, Account: row.Account, Err: err}) {
				return
			}
			if t, ok := m.tools[row.Tool]; ok {
				row.SchemaChanged, row.Blocked = t.SchemaChanged, t.Blocked
				if !yield(row) {
					return
				}
			}
		}
	}
}

// marker knows what policy says about the tools of one server; the rows of a server
// come together.
type marker struct {
	key   host.Key
	tools map[string]Tool // by the server's own name
}

// read looks a server up, once for all its rows.
func (m *marker) read(ctx context.Context, h *App, row host.Row) error {
	k := host.Key{Principal: h.principal, Server: row.Server, Account: row.Account}
	if m.tools != nil && m.key == k {
		return nil
	}
	m.key, m.tools = k, map[string]Tool{}
	l, _, err := h.gate.Known(ctx, h.caller(), k)
	if err != nil {
		return err
	}
	for _, t := range l.Tools {
		m.tools[t.Own] = t
	}
	return nil
}
