package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
)

// needs is how much of a server a verb uses.
type needs uint8

const (
	// needServer: that the server exists for the caller. Enough to list its tools.
	needServer needs = iota + 1
	// needTool: one tool, by name.
	needTool
	// needWhole: more than single tools, see Scope.Whole.
	needWhole
)

// methods says what each method of a client needs. What is not listed needs the
// whole server. A test compares the table with the methods of internal/wire.
var methods = map[string]needs{
	mcp.MethodToolsList:     needServer,
	mcp.MethodToolsCall:     needTool,
	mcp.MethodPromptsList:   needWhole,
	mcp.MethodPromptsGet:    needWhole,
	mcp.MethodResourcesList: needWhole,
	mcp.MethodTemplatesList: needWhole,
	mcp.MethodResourcesRead: needWhole,
	mcp.MethodSubscribe:     needWhole,
	mcp.MethodUnsubscribe:   needWhole,
	mcp.MethodComplete:      needWhole,
	mcp.MethodListen:        needServer, // Listen looks at what is subscribed to
	mcp.MethodInitialize:    needServer,
	mcp.MethodDiscover:      needServer,
	mcp.MethodPing:          needServer,
	// A level that was asked for on a session's own connection; what a server logs
	// on a shared one reaches callers of the whole server only.
	mcp.MethodSetLevel: needServer,
}

func needOf(method string) needs {
	if n, ok := methods[method]; ok {
		return n
	}
	return needWhole
}

// allow decides every verb: whether the server, account and tool exist for the
// caller, then the rules, then the hook of the program. It returns the server's own
// name of the tool. k is a key of the caller, see Caller.own.
//
// What does not exist for the caller is an [UnknownError], the same as for a name
// that nobody uses; what the rules forbid is a [DeniedError].
func (g *Gate) allow(ctx context.Context, c *Caller, k Key, n needs, tool string) (string, error) {
	return g.allowState(ctx, c, k, n, tool, g.accounts.find(k))
}

// allowState is allow with what is remembered about the account, nil for nothing.
func (g *Gate) allowState(ctx context.Context, c *Caller, k Key, n needs, tool string, state *accountState) (string, error) {
	if !g.exists(ctx, k, state) {
		return "", g.unknownServer(c, k, false)
	}
	return g.allowExisting(ctx, c, k, n, tool, state)
}

// allowCall is allow for a call, without the hook: that is asked when the arguments
// have been checked.
func (g *Gate) allowCall(ctx context.Context, c *Call, state *accountState) (string, error) {
	if !g.exists(ctx, c.Key, state) {
		return "", g.unknownServer(&c.Caller, c.Key, false)
	}
	return g.inScope(ctx, &c.Caller, c.Key, needTool, c.Tool, state)
}

// allowExisting is allow for an account of which it does not matter whether it
// exists yet.
func (g *Gate) allowExisting(ctx context.Context, c *Caller, k Key, n needs, tool string, state *accountState) (string, error) {
	own, err := g.inScope(ctx, c, k, n, tool, state)
	if err != nil {
		return "", err
	}
	return own, g.askHook(ctx, k, own, tool, nil)
}

// inScope decides by the scope of the caller, then by the rules.
func (g *Gate) inScope(ctx context.Context, c *Caller, k Key, n needs, tool string, state *accountState) (string, error) {
	if !c.Scope.server(k.Server, k.Account) {
		return "", g.unknownServer(c, k, true)
	}
	v := g.decide(state, k, tool)
	switch {
	case n == needTool && !c.Scope.tool(k.Server, k.Account, v.tool):
		return "", g.unknownTool(ctx, c, k, tool, true)
	case n == needWhole && !c.Scope.Whole(k.Server, k.Account):
		return "", &UnknownError{Server: k.Server, Account: k.Account, hidden: true, part: true}
	case v.denied != nil:
		return "", v.denied
	}
	return v.tool, nil
}

// decide asks the rules.
func (g *Gate) decide(state *accountState, k Key, tool string) verdict {
	r := g.rules.Load()
	if state != nil {
		return state.decide(r, tool)
	}
	return r.decide(k.Server, k.Account, tool)
}

// exists reports whether there is such a server and account. A server is looked up
// when nothing is remembered about it; Configure forgets what has gone.
func (g *Gate) exists(ctx context.Context, k Key, state *accountState) bool {
	if state == nil && g.fleet != nil {
		if _, ok := g.fleet.Named(k.Server); !ok {
			return false
		}
	}
	return k.Account == "" || g.opt.Accounts == nil || g.opt.Accounts.Has(ctx, k.Principal, k.Server, k.Account)
}

// admit is allow for a verb that a caller uses: a refusal is recorded.
func (g *Gate) admit(ctx context.Context, c *Caller, k Key, method, tool string) (string, error) {
	own, err := g.allow(ctx, c, k, needOf(method), tool)
	if err != nil {
		g.refused(c, k, method, tool, err)
	}
	return own, err
}

// Allowed reports whether a caller may use a tool or, with an empty tool, start and
// list the server. It asks the scope, the rules and the hook, and records nothing.
func (g *Gate) Allowed(ctx context.Context, c Caller, k Key, tool string) error {
	n := needServer
	if tool != "" {
		n = needTool
	}
	_, err := g.allow(ctx, &c, c.own(k), n, tool)
	return err
}

// MayRegister reports whether the rules and the hook allow a server that is not
// registered yet.
func (g *Gate) MayRegister(ctx context.Context, c Caller, server string) error {
	_, err := g.allowExisting(ctx, &c, c.own(Key{Server: server}), needServer, "", nil)
	return err
}

// UnknownError says that a server, account or tool does not exist, or not for this
// caller: both read the same. It is [host.ErrUnknownServer] or
// [host.ErrUnknownTool].
type UnknownError struct {
	Server  string
	Account string
	Tool    string   // empty when the server or account is unknown
	Near    []string // names that exist for the caller and may be meant

	hidden bool // it exists, but not for the caller
	part   bool // the server exists for the caller, but not what was asked for
}

func (e *UnknownError) Error() string {
	var near string
	if len(e.Near) > 0 {
		near = `; did you mean "` + strings.Join(e.Near, `" or "`) + `"?`
	}
	switch {
	case e.part:
		return "the request is not supported by " + config.Unquoted(scopeName(e.Server, e.Account))
	case e.Tool != "":
		return fmt.Sprintf("%s has no tool named %s%s", config.Unquoted(scopeName(e.Server, e.Account)), config.Visible(e.Tool), near)
	case e.Account != "":
		return fmt.Sprintf("no server or account is named %s%s", config.Visible(scopeName(e.Server, e.Account)), near)
	}
	return fmt.Sprintf("no server is named %s%s", config.Visible(e.Server), near)
}

// Is makes errors.Is hold for the sentinels of host.
func (e *UnknownError) Is(target error) bool {
	if e.Tool != "" {
		return target == host.ErrUnknownTool
	}
	return !e.part && target == host.ErrUnknownServer
}

// Unsupported reports that the server exists for the caller, but not what was asked for.
func (e *UnknownError) Unsupported() bool { return e.part }

// Hint is the next step for a person.
func (e *UnknownError) Hint() string {
	switch {
	case e.part:
		return ""
	case e.Tool != "":
		return "list the tools of " + scopeName(e.Server, e.Account)
	case e.Account != "":
		return "log in to " + scopeName(e.Server, e.Account)
	}
	return "list the servers"
}

func (g *Gate) unknownServer(c *Caller, k Key, hidden bool) error {
	var names []string
	for _, s := range g.visible(c) {
		names = append(names, scopeName(s.Name, s.Account))
	}
	return &UnknownError{Server: k.Server, Account: k.Account, Near: config.Nearest(scopeName(k.Server, k.Account), names), hidden: hidden}
}

// unknownTool suggests tools that are known already and exist for the caller.
func (g *Gate) unknownTool(ctx context.Context, c *Caller, k Key, tool string, hidden bool) error {
	e := &UnknownError{Server: k.Server, Account: k.Account, Tool: tool, hidden: hidden}
	if l, known, err := g.known(ctx, c, k); err == nil && known {
		names := make([]string, 0, len(l.Tools))
		for _, t := range l.Tools {
			if !t.Blocked {
				names = append(names, t.Name)
			}
		}
		e.Near = config.Nearest(tool, names)
	}
	return e
}
