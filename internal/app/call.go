package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/policy/pins"
)

// CallOptions steer one call. The zero value works.
type CallOptions struct {
	// Timeout replaces the server's timeouts.call. 0: it does not.
	Timeout time.Duration
	// OnNotification hears progress and log messages of the call. It must not
	// block.
	OnNotification func(mcp.Message)
	// Answer answers what the server asks before it answers itself. Without it
	// such a call fails.
	Answer mcp.Responder
}

// Call runs a tool under policy and supervision and returns the raw result.
// account is a server's name, or server@label. A tool that answers with an error
// has answered: look at isError in the result.
func (h *App) Call(ctx context.Context, account, tool string, arguments []byte, opt *CallOptions) ([]byte, error) {
	k, err := h.key(account)
	if err != nil {
		return nil, err
	}
	var o CallOptions
	if opt != nil {
		o = *opt
	}
	req := policy.Request{Answer: o.Answer, Timeout: o.Timeout}
	req.Params, req.OnNotification = callParams(tool, arguments, o.OnNotification != nil), o.OnNotification
	res, err := h.gate.Call(ctx, policy.Call{Request: req, Caller: h.self, Key: k, Tool: tool})
	return res.Raw, err
}

// ConnectEarly connects to the server of a tool that will be called in a moment, if
// policy allows the call. The server then starts before budgets are checked; the call
// uses the connection, or gets its error, as if it had connected itself.
func (h *App) ConnectEarly(ctx context.Context, account, tool string) {
	k, err := h.key(account)
	if err != nil || h.gate.Allowed(ctx, h.self, k, tool) != nil {
		return // as the call will say
	}
	// What connecting reads of the store is read before budgets are written to it: at
	// the same time it would take a second connection, which costs more than all of it.
	h.logins.Load(ctx, k)
	h.hosted.Ahead(ctx, k)
}

// callParams makes the params of a call; with progress the server is asked to tell
// how far it is.
func callParams(tool string, arguments []byte, progress bool) []byte {
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	params := fmt.Appendf(nil, `{"name":%s,"arguments":%s`, jsonx.Quote(tool), arguments)
	if progress {
		params = append(params, `,"_meta":{"progressToken":1}`...)
	}
	return append(params, '}')
}

// Tool is one tool of a server; its definition is what the server sent.
type Tool = policy.Tool

// ToolList is what a server offers.
type ToolList struct {
	Tools   []Tool
	At      time.Time // when they were read
	Stale   bool      // they are only what was last known
	Problem error     // why they could not be read again
}

// Tools returns the tools of a server that policy allows, read from the server
// where that is needed and possible.
func (h *App) Tools(ctx context.Context, account string) (ToolList, error) {
	k, err := h.key(account)
	if err != nil {
		return ToolList{}, err
	}
	l, err := h.gate.Tools(ctx, h.self, k)
	if err != nil {
		return ToolList{}, err
	}
	return ToolList{Tools: l.Tools, At: l.At, Stale: l.Stale && l.Problem != nil, Problem: l.Problem}, nil
}

// Tool returns one tool, from the catalog where it is there.
func (h *App) Tool(ctx context.Context, account, name string) (Tool, error) {
	k, err := h.key(account)
	if err != nil {
		return Tool{}, err
	}
	if err := h.gate.Allowed(ctx, h.self, k, name); err != nil {
		return Tool{}, err // it is not in the list then, and that would be no answer
	}
	named := func(t Tool) bool { return t.Name == name }
	known := h.Catalog().CachedTools(ctx, account)
	if i := slices.IndexFunc(known, named); i >= 0 {
		return known[i], nil
	}
	list, err := h.Tools(ctx, account)
	if err != nil {
		return Tool{}, err
	}
	if i := slices.IndexFunc(list.Tools, named); i >= 0 {
		return list.Tools[i], nil
	}
	return Tool{}, unknownTool(account, name, list.Tools)
}

// unknownTool explains that a server has no such tool and which may be meant.
func unknownTool(account, name string, tools []Tool) error {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	err := &host.Error{Server: account, Err: fmt.Errorf("%s has no tool named %q (%w)", account, name, host.ErrUnknownTool), Advice: "usher tools " + account}
	if near := config.Nearest(name, names); len(near) > 0 {
		err.Advice = fmt.Sprintf("did you mean %s?", strings.Join(near, " or "))
	}
	return err
}

// Status is the state of every server.
func (h *App) Status() host.Status {
	st := h.hosted.Status()
	for i := range st.Servers {
		st.Servers[i].CacheEntries = h.gate.CacheEntries(st.Servers[i].Name)
	}
	return st
}

// Allowed says whether a tool may be used, or with an empty tool whether the server
// may be.
func (h *App) Allowed(ctx context.Context, account, tool string) error {
	k, err := h.key(account)
	if err != nil {
		return err
	}
	return h.gate.Allowed(ctx, h.self, k, tool)
}

// Pins is what is pinned for this process's principal.
func (h *App) Pins() *pins.Store { return h.gate.Pins(h.principal) }
