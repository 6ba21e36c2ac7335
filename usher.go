// Package usher is the front door for programs that embed usher:
//
//	h, err := usher.Open(ctx, nil)       // the user's own configuration
//	defer h.Close()
//	result, err := h.Call(ctx, "github", "search_issues", []byte(`{"query":"bug"}`), nil)
package usher

import (
	"context"
	"iter"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
)

// Host is everything: servers, policy and store.
type Host struct{ *app.App }

type (
	// Options steer [Open]. The zero value opens what the usher command would.
	Options = app.Options
	// CallOptions steer one call. The zero value works.
	CallOptions = app.CallOptions
)

// Open wires a host. Nothing is started and nothing is reached before it is used.
func Open(ctx context.Context, opt *Options) (*Host, error) {
	h, err := app.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	return &Host{h}, nil
}

// Spawn registers a server that no file has, see [app.Servers.Spawn].
func (h *Host) Spawn(ctx context.Context, srv config.Server, opt *host.SpawnOptions) error {
	return h.Servers().Spawn(ctx, srv, opt)
}

// Discover yields the tools of all servers, or of those named, see [app.Catalog.Discover].
func (h *Host) Discover(ctx context.Context, servers ...string) iter.Seq[host.Row] {
	return h.Catalog().Discover(ctx, servers...)
}

// Executable returns what Options.Executable should be in a program whose main
// function calls process.Main first.
func Executable() string { return app.Executable() }
