package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/servercard"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface/search"
	"github.com/usher-mcp/usher/vault"
)

// Catalog is what servers offer: the last known tools, without a connection, and what
// they list now.
type Catalog struct{ h *App }

// Catalog is what servers offer.
func (h *App) Catalog() Catalog { return Catalog{h} }

// CachedServer is the last known catalog of one account.
type CachedServer struct {
	// Account is a server, or server@label.
	Account string
	// Tools are those that policy allows.
	Tools []Tool
	// Definitions are all tools the server listed, raw. Do not change them.
	Definitions [][]byte
	// Version is the protocol revision it spoke.
	Version string
	// At is when the tools were read; zero when they never were.
	At time.Time
	// Stale: the definition of the server, or its list, has changed since.
	Stale bool
}

// Cached returns the last known tools of all servers, sorted by account. Nothing is
// started and nothing is reached. A server that was never asked is there without
// tools; one that is disabled, denied or not approved is left out.
func (c Catalog) Cached(ctx context.Context) ([]CachedServer, error) {
	accounts, err := c.accounts(ctx)
	if err != nil {
		return nil, err
	}
	var out []CachedServer
	for _, name := range accounts {
		k, err := c.h.key(name)
		if err != nil {
			continue // a record of another program's making
		}
		srv, ok := c.h.hosted.Server(k.Server)
		if !ok || srv.Disabled || c.h.approvals.check(ctx, srv) != nil {
			continue
		}
		l, known, err := c.h.gate.Known(ctx, c.h.self, k)
		if errors.Is(err, policy.ErrDenied) || errors.Is(err, host.ErrUnknownServer) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("known tools of %s: %w", name, err)
		}
		s := CachedServer{Account: name}
		if known {
			s = CachedServer{name, l.Tools, l.Catalog.Tools, l.Version, l.At, l.Stale}
		}
		out = append(out, s)
	}
	return out, nil
}

// accounts are all servers, and the accounts that were used before.
func (c Catalog) accounts(ctx context.Context) ([]string, error) {
	names := c.h.hosted.Names()
	entries, err := vault.NewCatalog(c.h.store, c.h.principal).List(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name, "@") {
			names = append(names, e.Name)
		}
	}
	names = append(names, c.h.catalog.Accounts(c.h.principal)...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Found is one tool that fits a search.
type Found struct {
	Account string // a server, or server@label
	Tool    Tool
	// Title is the tool's title or the first line of its description. It is the
	// server's text: escape it before it is shown.
	Title string
	// Score grows with how well it fits; scores of two searches do not compare.
	Score float64
}

// Search finds tools by words among those that are known, best first, at most limit
// of them ([surface.DefaultLimit] when it is not positive).
func Search(known []CachedServer, words string, limit int) []Found {
	var docs []search.Document
	tools := map[[2]string]Tool{}
	for _, s := range known {
		for _, t := range s.Tools {
			docs = append(docs, search.Document{Server: s.Account, Tool: t.Name, Definition: t.Definition})
			tools[[2]string{s.Account, t.Name}] = t
		}
	}
	var out []Found
	for _, hit := range search.NewIndex(docs).Search(words, limit) {
		out = append(out, Found{hit.Server, tools[[2]string{hit.Server, hit.Tool}], hit.Title, hit.Score})
	}
	return out
}

// Search is [Search] over the last known tools of all servers.
func (c Catalog) Search(ctx context.Context, words string, limit int) ([]Found, error) {
	known, err := c.Cached(ctx)
	if err != nil {
		return nil, err
	}
	return Search(known, words, limit), nil
}

// CachedTools returns the last known tools of a server without a connection.
func (c Catalog) CachedTools(ctx context.Context, account string) []Tool {
	k, err := c.h.key(account)
	if err != nil {
		return nil
	}
	l, _, err := c.h.gate.Known(ctx, c.h.self, k)
	if err != nil {
		return nil // for completion and the like an empty list is an answer too
	}
	return l.Tools
}

// Card reads the card of a server from the path or URL that its definition names. The
// server is not connected to, and the request for the card carries no credentials. A
// definition of a project file must have been approved.
func (c Catalog) Card(ctx context.Context, server string) (servercard.Card, error) {
	k, err := c.h.key(server)
	if err != nil {
		return servercard.Card{}, err
	}
	if err := c.h.gate.Allowed(ctx, c.h.self, k, ""); err != nil {
		return servercard.Card{}, err
	}
	srv, ok := c.h.hosted.Server(k.Server)
	if !ok {
		return servercard.Card{}, c.h.hosted.Unknown(k.Server)
	}
	if err := c.h.approvals.check(ctx, srv); err != nil && srv.Card != "" {
		return servercard.Card{}, &host.Error{Server: k.Server, Err: fmt.Errorf("%w: %w", host.ErrHeldBack, err), Action: host.ActionApprove}
	}
	opt := &servercard.Options{
		Gate: c.h.gate, Caller: c.h.self, Lookup: c.h.placeholders, Transport: c.h.network.plain, PublicOnly: c.h.approvals.publicOnly,
	}
	if c.h.network.ownPublic != nil {
		opt.Public = c.h.network.ownPublic
	}
	return servercard.Read(ctx, k, srv, opt)
}

// Discover yields the tools of all servers, or of those named, as they come: one row a tool, or one
// with the reason why a server has none to show. Tools that differ from their pins are
// marked. Servers that policy would not start are left out, and so are tools that it
// forbids.
func (c Catalog) Discover(ctx context.Context, servers ...string) iter.Seq[host.Row] {
	var keys []host.Key
	for _, name := range c.h.hosted.Names() {
		if len(servers) > 0 && !slices.Contains(servers, name) {
			continue
		}
		k := host.Key{Principal: c.h.principal, Server: name}
		if srv, ok := c.h.hosted.Server(name); ok && !srv.Disabled && c.h.gate.Allowed(ctx, c.h.self, k, "") == nil {
			keys = append(keys, k)
		}
	}
	return func(yield func(host.Row) bool) {
		var m marker
		for row := range c.h.hosted.Discover(ctx, keys) {
			if row.Tool == "" {
				if !yield(row) {
					return
				}
				continue
			}
			if err := m.read(ctx, c.h, row); err != nil && !yield(host.Row{Server: row.Server, Account: row.Account, Err: err}) {
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
	l, _, err := h.gate.Known(ctx, h.self, k)
	if err != nil {
		return err
	}
	for _, t := range l.Tools {
		m.tools[t.Own] = t
	}
	return nil
}
