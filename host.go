package usher

import (
	"context"
	"iter"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/policy/pins"
	"github.com/usher-mcp/usher/vault"
)

// CallOptions configure one call. The zero value works.
type CallOptions struct {
	// Timeout replaces the server's timeouts.call. 0: it does not. Time that Answer
	// takes does not count.
	Timeout time.Duration
	// OnNotification receives the progress and log messages of the call. It must not
	// block.
	OnNotification func(mcp.Message)
	// Answer answers what the server asks before it answers the call, such as
	// [mcp.MethodElicit]. Options.Capabilities must announce it. Nil: such a call fails.
	Answer mcp.Responder
}

// Call runs a tool under policy and supervision and returns the raw result, see
// [ParseResult]. A tool that reports an error has answered: err is nil, and the result
// has isError.
func (h *Host) Call(ctx context.Context, account, tool string, arguments []byte, opt *CallOptions) ([]byte, error) {
	return h.app.Call(ctx, account, tool, arguments, (*app.CallOptions)(opt))
}

// ToolList is the tools of a server.
type ToolList struct {
	Tools   []policy.Tool
	At      time.Time // when they were read
	Stale   bool      // the server could not be asked: they are the last known ones
	Problem error     // why it could not be asked
}

// Tools returns the tools of a server that policy allows, and connects if necessary.
func (h *Host) Tools(ctx context.Context, account string) (ToolList, error) {
	l, err := h.app.Tools(ctx, account)
	return ToolList(l), err
}

// Discover yields the tools of all servers, or of those named, as they arrive: one row
// for each tool, or one with the reason why a server has none. Tools that differ from
// their pins are marked; what policy denies is left out.
func (h *Host) Discover(ctx context.Context, servers ...string) iter.Seq[host.Row] {
	return h.app.Catalog().Discover(ctx, servers...)
}

// Status returns the state of every server.
func (h *Host) Status() host.Status { return h.app.Status() }

// CacheStats returns the counters of the result cache.
func (h *Host) CacheStats() policy.CacheStats { return h.app.Gate().CacheStats() }

// Events returns a subscription to everything that happens from now on: servers,
// circuits, logins, pins, budgets, lists and calls. It keeps at most backlog unread
// events (256 when backlog is not positive) and drops the oldest ones beyond that; calls
// never wait for a reader. Close it, or close the host.
func (h *Host) Events(backlog int) *event.Subscription[event.Event] {
	return h.events.Subscribe(backlog)
}

// Spawn adds a server and, unless it is lazy, connects to it, so that a broken
// definition fails now. A failed Spawn leaves nothing behind. A server that requires a
// login is added with the state needs_auth.
func (h *Host) Spawn(ctx context.Context, srv config.Server, opt *host.SpawnOptions) error {
	return h.app.Servers().Spawn(ctx, srv, opt)
}

// Replace is Spawn for a name that may be in use: requests in flight finish on the old
// server, and it stays if the new definition fails. Pins and budgets belong to the name:
// tools that differ from those of the old server are blocked until they are accepted,
// see [Host.Pins].
func (h *Host) Replace(ctx context.Context, srv config.Server, opt *host.SpawnOptions) error {
	var o host.SpawnOptions
	if opt != nil {
		o = *opt
	}
	o.Replace = true
	return h.app.Servers().Spawn(ctx, srv, &o)
}

// Remove disconnects a server and removes it. Its logins and pins stay in the store.
func (h *Host) Remove(name string) error { return h.app.Servers().Remove(name) }

// Reload drops the connections of a server and clears its circuit breaker, restart
// budget, ejection and cache, so that the next call connects again.
func (h *Host) Reload(ctx context.Context, name string) error {
	return h.app.Servers().Reload(ctx, name)
}

// SetHook replaces the program's own policy for requests that begin from now on; nil
// removes it. The hook is asked after the configured rules, with the principal, the tool
// and the arguments, and can only refuse.
func (h *Host) SetHook(hook policy.Hook) { h.app.SetHook(hook) }

// Pins returns the pinned tool definitions of the host's principal: list, compare,
// accept, and write or verify a lock file.
func (h *Host) Pins() *pins.Store { return h.app.Pins() }

// Approvals returns which server definitions of project files the user has approved.
func (h *Host) Approvals() *vault.Approvals { return h.app.Approvals() }

// Gateway serves the host to MCP clients; mount its Handler in a mux, and close it
// before the host. Nil options are those of the configuration, without authentication.
// Behind a mux of the program's own, Options.Hosts must list the names under which
// clients reach it.
func (h *Host) Gateway(opt *gateway.Options) *gateway.Gateway {
	if opt == nil {
		return h.app.Frontend().Gateway(nil)
	}
	return gateway.New(h.app.Frontend().Surface(), opt)
}
