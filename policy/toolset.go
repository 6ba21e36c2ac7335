package policy

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy/pins"
)

// Tool is a tool that may be listed. Marks stand beside the definition, never in
// it.
type Tool struct {
	Server  string
	Account string // empty for the default one
	Name    string // what it is called by; differs from Own where config renames it
	Own     string // the server's own name
	// Definition is what the server sent, to the byte. Do not change it.
	Definition []byte
	// SchemaChanged: it differs from its pin. Blocked: so it cannot be called,
	// and its text should not reach a model either.
	SchemaChanged bool
	Blocked       bool
	// Hidden names the members that hold invisible text.
	Hidden []string
}

// Listing is what a server offers, of its tools those that are allowed. Its slices
// are shared: do not change them.
type Listing struct {
	Catalog
	Tools []Tool
}

// toolset is a list of tools and how they stand to their pins.
type toolset struct {
	named map[string]*knownTool
	mode  string
	list  [][]byte // the list it was made from, to know it again
	at    time.Time
	tools []*knownTool

	allowed atomic.Pointer[allowedTools]
}

// allowedTools is the listing under one set of rules.
type allowedTools struct {
	by    *rules
	tools []Tool

	mu     sync.Mutex // guards scoped
	scoped map[string][]Tool
}

type knownTool struct {
	pins.Definition
	pins.Observation
}

// sameList tells whether a catalog is the one a set was made from, or an earlier
// reading of it over another connection, without looking into it.
func (t *toolset) sameList(c host.Catalog) bool {
	return len(t.list) == len(c.Tools) && !c.At.After(t.at) && (len(t.list) == 0 || &t.list[0] == &c.Tools[0])
}

// How often a list is read again before a call: one that a server said has changed
// soon, one whose time has merely run out now and then.
const (
	confirmChanged = 2 * time.Second
	confirmExpired = time.Minute
)

// Tools lists what a server offers to a caller, up to date where it can be asked.
func (g *Gate) Tools(ctx context.Context, c Caller, k Key) (Listing, error) {
	k = c.own(k)
	if _, err := g.admit(ctx, &c, k, mcp.MethodToolsList, ""); err != nil {
		return Listing{}, err
	}
	sc := g.account(k)
	cat, err := g.line(sc, k).Tools(ctx)
	if err != nil {
		return Listing{}, err
	}
	return g.listing(ctx, &c, sc, k, cat)
}

// Known is Tools from memory, without a connection; false when nothing is known.
func (g *Gate) Known(ctx context.Context, c Caller, k Key) (Listing, bool, error) {
	k = c.own(k)
	if _, err := g.allow(ctx, &c, k, needServer, ""); err != nil {
		return Listing{}, false, err
	}
	return g.known(ctx, &c, k)
}

func (g *Gate) known(ctx context.Context, c *Caller, k Key) (Listing, bool, error) {
	sc := g.account(k)
	cat, ok := g.line(sc, k).Cached()
	if !ok {
		return Listing{}, false, nil
	}
	l, err := g.listing(ctx, c, sc, k, cat)
	return l, err == nil, err
}

// listing is what of a catalog exists for the caller.
func (g *Gate) listing(ctx context.Context, c *Caller, sc *accountState, k Key, cat host.Catalog) (Listing, error) {
	r := g.rules.Load()
	set, err := g.toolset(ctx, sc, k, cat, sc.ruledBy(r).pins)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Catalog: cat, Tools: g.hooked(ctx, k, set.under(r, k, c.Scope))}
	if c.Scope != nil {
		l.Catalog.Tools, l.Public = nil, l.Public && !c.Scope.Narrow()
	}
	if !c.Scope.Whole(k.Server, k.Account) {
		l.Prompts, l.Resources, l.Templates, l.Instructions = nil, nil, nil, ""
	}
	return l, nil
}

// under returns the tools that the rules allow and that are in the scope. The slice
// is shared.
func (t *toolset) under(r *rules, k Key, scope *Scope) []Tool {
	a := t.allowed.Load()
	if a == nil || a.by != r {
		a = t.allow(r, k)
		t.allowed.Store(a)
	}
	if scope == nil {
		return a.tools
	}
	return a.within(k, scope)
}

func (t *toolset) allow(r *rules, k Key) *allowedTools {
	a := &allowedTools{by: r}
	for _, known := range t.tools {
		if known.Name == "" {
			continue
		}
		name := r.shownName(k.Server, known.Name)
		v := r.judge(r.servers[k.Server], k.Server, k.Account, name)
		if v.denied != nil || v.tool != known.Name {
			continue // the second: a rename gave its name to another tool
		}
		a.tools = append(a.tools, Tool{
			Server: k.Server, Account: k.Account, Name: name, Own: known.Name, Definition: known.Raw, Hidden: known.Hidden,
			SchemaChanged: known.Blocks(), Blocked: known.Blocks() && t.mode == config.PinsBlock,
		})
	}
	return a
}

// within returns the tools of a scope, computed once for each scope.
func (a *allowedTools) within(k Key, scope *Scope) []Tool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tools, ok := a.scoped[scope.key]; ok {
		return tools
	}
	var tools []Tool
	for _, t := range a.tools {
		if scope.tool(k.Server, k.Account, t.Own) {
			tools = append(tools, t)
		}
	}
	if a.scoped == nil || len(a.scoped) >= limit.ScopedLists {
		a.scoped = map[string][]Tool{}
	}
	a.scoped[scope.key] = tools
	return tools
}

// checkPin refuses a tool that differs from its pin, and one that does not exist.
func (g *Gate) checkPin(ctx context.Context, sc *accountState, c *Call, tool string) error {
	k := c.Key
	mode := sc.ruledBy(g.rules.Load()).pins
	set, err := g.current(ctx, sc, k, mode)
	if err != nil || set == nil {
		return err
	}
	known := set.named[tool]
	if own, ok := g.line(sc, k).Cached(); known == nil && k.Lane != "" && ok { // a tool of that session alone
		if set, err = g.toolset(ctx, sc, k, own, mode); err != nil {
			return err
		}
		known = set.named[tool]
	}
	if known == nil {
		if set, err = g.reread(ctx, sc, k, mode, set); err != nil {
			return err
		}
		if known = set.named[tool]; known == nil {
			return g.unknownTool(ctx, &c.Caller, k, c.Tool, false)
		}
	}
	if mode != config.PinsBlock || !known.Blocks() {
		return nil
	}
	return g.stillBlocked(ctx, sc, k, set, tool)
}

// stillBlocked looks at the store before it refuses: somebody may have accepted
// the change, in this process or another.
func (g *Gate) stillBlocked(ctx context.Context, sc *accountState, k Key, set *toolset, tool string) error {
	set, err := g.build(ctx, sc, k, host.Catalog{Tools: set.list, At: set.at}, set.mode, set)
	if err != nil {
		return err
	}
	known := set.named[tool]
	if known == nil || !known.Blocks() {
		return nil
	}
	return &ChangedError{Server: k.Server, Account: k.Account, Tool: tool, Fields: known.Changed, Reason: known.Reason}
}

// current returns the tools to judge a call by; nil when nothing is known and
// nothing has to be. A list remembered from an earlier run, and one that the
// server said has changed, is read again first: that is when tools change.
func (g *Gate) current(ctx context.Context, sc *accountState, k Key, mode string) (*toolset, error) {
	to := g.line(sc, k)
	c, ok := to.Cached()
	if newer, known := sc.line.Cached(); k.Lane != "" && known && (!ok || newer.At.After(c.At)) {
		to, c, ok = sc.line, newer, true // the session's own connection may not have heard of a change yet
	}
	switch {
	case !ok && mode == config.PinsOff:
		return nil, nil
	case !ok || mode != config.PinsOff && g.doubtful(sc, c):
		var err error
		if c, err = listForCall(ctx, to); err != nil {
			return nil, err
		}
	}
	return g.toolset(ctx, sc, k, c, mode)
}

// listForCall reads the list that a call is judged by. When there is no connection, that
// is the failure of the call: it would only try to connect once more. A server that
// answers calls and not the list is judged by the last known one.
func listForCall(ctx context.Context, to line) (host.Catalog, error) {
	c, err := to.Tools(ctx)
	if err == nil && c.Problem != nil && host.Unreached(c.Problem) {
		err = c.Problem
	}
	return c, err
}

func (g *Gate) doubtful(sc *accountState, c host.Catalog) bool {
	if !c.Stale && !c.At.Before(g.started) {
		return false
	}
	wait := confirmChanged
	if c.TTL > 0 && time.Since(c.At) >= c.TTL {
		wait = confirmExpired
	}
	return due(&sc.confirm, wait)
}

// reread asks for the list again when a tool is not in it, but not for every wrong
// name.
func (g *Gate) reread(ctx context.Context, sc *accountState, k Key, mode string, old *toolset) (*toolset, error) {
	if time.Since(old.at) < confirmChanged || !due(&sc.reread, confirmChanged) {
		return old, nil
	}
	c, err := listForCall(ctx, g.line(sc, k))
	if err != nil {
		return nil, err
	}
	return g.toolset(ctx, sc, k, c, mode)
}

// toolset returns the set of a catalog, made once.
func (g *Gate) toolset(ctx context.Context, sc *accountState, k Key, c host.Catalog, mode string) (*toolset, error) {
	if set := sc.tools.Load(); set != nil && set.mode == mode && set.sameList(c) {
		return set, nil
	}
	return g.build(ctx, sc, k, c, mode, nil)
}

// build compares a list with its pins and keeps the result, unless somebody else
// just did; but not the one that is not good enough.
func (g *Gate) build(ctx context.Context, sc *accountState, k Key, c host.Catalog, mode string, not *toolset) (*toolset, error) {
	select {
	case <-sc.turn:
		defer func() { sc.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	old := sc.tools.Load()
	if old != nil && old != not && old.mode == mode && old.sameList(c) {
		return old, nil
	}
	set, err := newToolset(ctx, c, mode, old)
	if err != nil {
		return nil, err
	}
	if mode != config.PinsOff {
		if err := g.observe(ctx, sc, k, set); err != nil {
			return nil, err
		}
	}
	sc.tools.Store(set)
	return set, nil
}

// newToolset reads the definitions; those that have not changed since old are
// taken from it with their hashes.
func newToolset(ctx context.Context, c host.Catalog, mode string, old *toolset) (*toolset, error) {
	set := &toolset{mode: mode, list: c.Tools, at: c.At, named: make(map[string]*knownTool, len(c.Tools))}
	for i, raw := range c.Tools {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		known := &knownTool{}
		if old != nil && i < len(old.tools) && bytes.Equal(old.tools[i].Raw, raw) {
			known.Definition = old.tools[i].Definition
			known.Raw = raw
		} else {
			known.Definition = pins.NewDefinition(raw)
		}
		set.tools = append(set.tools, known)
		if known.Name != "" && set.named[known.Name] == nil {
			set.named[known.Name] = known
		}
	}
	return set, nil
}

// observe compares the set with the pins of the account.
func (g *Gate) observe(ctx context.Context, sc *accountState, k Key, set *toolset) error {
	defs := make([]pins.Definition, len(set.tools))
	for i, known := range set.tools {
		defs[i] = known.Definition
	}
	found, notes, err := sc.pins.Observe(ctx, defs)
	if err != nil {
		return err
	}
	for i, known := range set.tools {
		known.Definition = defs[i] // with its hashes
		known.Observation = pins.Observation{}
		if f := found[known.Name]; f != nil {
			known.Observation = *f
		}
	}
	g.tell(k, notes)
	return nil
}

// tell logs what changed in a list; a server may change it all, again and again.
func (g *Gate) tell(k Key, notes []pins.Note) {
	if more := len(notes) - limit.NotesPerList; more > 0 {
		notes = notes[:limit.NotesPerList]
		defer g.opt.Log.Info("more tools are new or changed", "server", scopeName(k.Server, k.Account), "count", more)
	}
	for _, n := range notes {
		g.opt.Log.Info("a tool is "+n.Kind, "server", scopeName(k.Server, k.Account), "tool", n.Tool, "from", n.From)
		if g.opt.OnNote != nil {
			g.opt.OnNote(k, n)
		}
	}
}
