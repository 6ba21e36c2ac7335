package policy

import (
	"cmp"
	"context"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/jsonx"
)

// Hook is the policy of the embedding program. It is asked after the rules have
// allowed something, and may only refuse. It may be called concurrently.
type Hook func(ctx context.Context, r HookRequest) Decision

// HookRequest is what a [Hook] decides on.
type HookRequest struct {
	// Principal is the identity that the request acts as: "local" for the local user.
	Principal string
	// Server and Account name the account; Account is empty for the default one.
	Server, Account string
	// Tool is the server's own name of the tool. It is empty when the question is
	// whether the server may be used at all.
	Tool string
	// Arguments are the raw arguments of a call, as they will be sent. Nil when
	// nothing is called: a tool that is refused then is not listed. They are only
	// valid during the call of the hook, and must not be changed.
	Arguments []byte
}

// Decision is the answer of a [Hook]. A refusal without a reason gets one.
type Decision struct {
	Allow  bool
	Reason string
}

// SetHook replaces the hook for the requests that begin from now on. Nil: nobody is
// asked.
func (g *Gate) SetHook(hook Hook) {
	if hook == nil {
		g.hook.Store(nil)
		return
	}
	g.hook.Store(&hook)
}

// askHook asks the policy of the program about an account or, with the server's own
// name, about a tool; tool is the name that the caller used.
func (g *Gate) askHook(ctx context.Context, k Key, own, tool string, arguments []byte) error {
	hook := g.hook.Load()
	if hook == nil {
		return nil
	}
	d := (*hook)(ctx, HookRequest{Principal: cmp.Or(k.Principal, host.Local), Server: k.Server, Account: k.Account, Tool: own, Arguments: arguments})
	if d.Allow {
		return nil
	}
	if d.Reason == "" {
		d.Reason = "the program's own policy says no"
	}
	return &DeniedError{Server: k.Server, Account: k.Account, Tool: tool, Reason: d.Reason}
}

// askHookCall asks about a call whose params have been checked.
func (g *Gate) askHookCall(ctx context.Context, q *query, tool string) error {
	if g.hook.Load() == nil {
		return nil
	}
	arguments, ok := jsonx.Get(q.request.Params, "arguments")
	if !ok {
		arguments = []byte("{}")
	}
	return g.askHook(ctx, q.key, q.tool, tool, arguments)
}

// hooked leaves out the tools that the program's own policy forbids.
func (g *Gate) hooked(ctx context.Context, k Key, tools []Tool) []Tool {
	if g.hook.Load() == nil {
		return tools[:len(tools):len(tools)]
	}
	var out []Tool
	for _, t := range tools {
		if g.askHook(ctx, k, t.Own, t.Name, nil) == nil {
			out = append(out, t)
		}
	}
	return out
}
