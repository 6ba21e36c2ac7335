package usher

import (
	"cmp"
	"context"
	"sync"

	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/vault"
)

// Host hosts MCP servers: it connects, restarts and calls them, and holds the logins.
// All methods may be used concurrently. An account is a server's name, or name@label
// for one of several accounts at a server.
type Host struct {
	app       *app.App
	events    event.Bus[event.Event]
	principal string

	life context.Context // ends with Close
	end  context.CancelFunc

	mu         sync.Mutex // guards closed, and adding to background
	closed     bool
	background sync.WaitGroup // logins that are followed
}

// Open returns a host. It starts no server and sends no request. Nil options open what
// the usher command would; see [Ephemeral] for a host without files. The caller must
// Close it.
func Open(ctx context.Context, opt *Options) (*Host, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	h := &Host{principal: cmp.Or(o.Principal, vault.Local)}
	a, err := app.Open(ctx, &app.Options{
		Config: o.Config, Load: o.Load, Store: o.Store, Keychain: o.Keychain, Prompt: app.Prompt(o.Prompt),
		Principal: o.Principal, Hook: o.Hook, OnCall: o.OnCall, Lookup: o.Lookup,
		Capabilities: o.Capabilities, ClientName: o.ClientName, ClientVersion: o.ClientVersion,
		Events: &h.events, Log: o.Log, Tracer: o.Tracer, Executable: o.Executable, Transport: o.Transport,
	})
	if err != nil {
		return nil, err
	}
	h.app = a
	h.life, h.end = context.WithCancel(context.Background())
	return h, nil
}

// Close ends all connections, stops all servers and ends all subscriptions. Logins that
// wait for a person stay in the store.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.background.Wait()
	err := h.app.Close()
	h.events.Close()
	return err
}

// spawn runs f in a goroutine that Close waits for; f must end when h.life does. It
// returns false, and does not run f, after Close.
func (h *Host) spawn(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.background.Go(f)
	return true
}

// Executable returns the value for Options.Executable in a program whose main function
// calls process.Main first.
func Executable() string { return process.Self() }
