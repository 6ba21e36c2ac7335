package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/vault"
)

// KnownServer is what is known of the tools of one account without a connection.
type KnownServer struct {
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

// Known returns the last known tools of all servers, sorted by account. Nothing is
// started and nothing is reached. A server that was never asked is there without
// tools; one that is disabled, denied or not approved is left out.
func (h *App) Known(ctx context.Context) ([]KnownServer, error) {
	accounts, err := h.knownAccounts(ctx)
	if err != nil {
		return nil, err
	}
	var out []KnownServer
	for _, name := range accounts {
		k, err := h.key(name)
		if err != nil {
			continue // a record of another program's making
		}
		srv, ok := h.hosted.Server(k.Server)
		if !ok || srv.Disabled || h.approved(ctx, srv) != nil {
			continue
		}
		l, known, err := h.gate.Known(ctx, h.caller(), k)
		if errors.Is(err, policy.ErrDenied) || errors.Is(err, host.ErrUnknownServer) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("known tools of %s: %w", name, err)
		}
		s := KnownServer{Account: name}
		if known {
			s = KnownServer{name, l.Tools, l.Catalog.Tools, l.Version, l.At, l.Stale}
		}
		out = append(out, s)
	}
	return out, nil
}

// knownAccounts are all servers, and the accounts that were used before.
func (h *App) knownAccounts(ctx context.Context) ([]string, error) {
	names := h.hosted.Names()
	entries, err := vault.NewCatalog(h.store, h.principal).List(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w", err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name, "@") {
			names = append(names, e.Name)
		}
	}
	names = append(names, h.catalog.Accounts(h.principal)...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Found is one tool that fits a search.
type Found struct {
	Account string // a server, or server@label
	Tool    Tool
	// Title is the tool's title or the first line of its description. It is the
	// server's text: whoever shows it escapes it.
	Title string
	// Score grows with how well it fits; scores of two searches do not compare.
	Score float64
}

// Search finds tools by words among those that are known, best first, at most limit
// of them ([surface.DefaultLimit] when it is not positive).
func Search(known []KnownServer, words string, limit int) []Found {
	var docs []surface.Document
	tools := map[[2]string]Tool{}
	for _, s := range known {
		for _, t := range s.Tools {
			docs = append(docs, surface.Document{Server: s.Account, Tool: t.Name, Definition: t.Definition})
			tools[[2]string{s.Account, t.Name}] = t
		}
	}
	var out []Found
	for _, hit := range surface.NewIndex(docs).Search(words, limit) {
		out = append(out, Found{hit.Server, tools[[2]string{hit.Server, hit.Tool}], hit.Title, hit.Score})
	}
	return out
}

// Search is [Search] over the last known tools of all servers.
func (h *App) Search(ctx context.Context, words string, limit int) ([]Found, error) {
	known, err := h.Known(ctx)
	if err != nil {
		return nil, err
	}
	return Search(known, words, limit), nil
}

// Pins is what is pinned for this host's principal.
func (h *App) Pins() *policy.Pins { return h.gate.Pins(h.principal) }

// Allowed says whether a tool may be used, or with an empty tool whether the server
// may be.
func (h *App) Allowed(ctx context.Context, account, tool string) error {
	k, err := h.key(account)
	if err != nil {
		return err
	}
	return h.gate.Allowed(ctx, h.caller(), k, tool)
}
