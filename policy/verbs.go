package policy

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
)

// fleet is what the gate uses of a [host.Host] beside the lines to its servers.
type fleet interface {
	Names() []string
	Named(name string) (kept string, ok bool)
	Server(name string) (config.Server, bool)
	Lazy(name string) bool
	StatusOf(principal string) []ServerStatus
	List(ctx context.Context, k Key, method string) (Catalog, error)
	Listen(ctx context.Context, k Key, want Subscription, on func(mcp.Message)) error
	Notify(ctx context.Context, k Key, method string, params []byte) error
	Version(ctx context.Context, k Key) (string, error)
	Release(k Key)
}

// Accounts knows which named accounts exist: those with a login, and those whose
// login is pending. Both methods must be cheap, since every request asks.
type Accounts interface {
	// Labels returns the named accounts of a principal at a server, sorted.
	Labels(principal, server string) []string
	// Has reports whether there is such an account.
	Has(ctx context.Context, principal, server, label string) bool
}

// Subscription says of which changes a caller wants to hear.
type Subscription = host.Subscription

// ServerStatus is the state of one server for a caller.
type ServerStatus = host.ServerStatus

// Server is a server, or one account at it, that exists for a caller.
type Server struct {
	Name    string // as configured
	Account string // empty for the default one
	// Description is one line for a list; empty when there is none.
	Description string
	Transport   string
	// Eager: its lists may be read in the background without being asked for.
	Eager bool
	// Off: it is disabled, broken or held back; it shows nothing.
	Off bool
	// Whole: prompts, resources and logins exist for the caller, not only tools.
	Whole bool
}

// Servers returns the servers and accounts that exist for a caller and that the
// rules allow, by name and account.
func (g *Gate) Servers(ctx context.Context, c Caller) []Server {
	out := g.visible(&c)
	if g.hook.Load() == nil {
		return out
	}
	return slices.DeleteFunc(out, func(s Server) bool {
		return g.askHook(ctx, Key{Principal: c.principal(), Server: s.Name, Account: s.Account}, "", "", nil) != nil
	})
}

// visible are the servers and accounts in the scope of a caller that the rules
// allow.
func (g *Gate) visible(c *Caller) []Server {
	if g.fleet == nil {
		return nil
	}
	names := g.fleet.Names()
	out := make([]Server, 0, len(names))
	for _, name := range names {
		srv, ok := g.fleet.Server(name)
		if !ok {
			continue
		}
		out = g.appendVisible(out, c, &srv, "")
		if g.opt.Accounts == nil {
			continue
		}
		for _, label := range g.opt.Accounts.Labels(c.principal(), name) {
			out = g.appendVisible(out, c, &srv, label)
		}
	}
	slices.SortFunc(out, func(a, b Server) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Account, b.Account)) })
	return out
}

func (g *Gate) appendVisible(out []Server, c *Caller, srv *config.Server, label string) []Server {
	k := Key{Principal: c.principal(), Server: srv.Name, Account: label}
	if !c.Scope.server(k.Server, label) || g.decide(g.accounts.find(k), k, "").denied != nil {
		return out
	}
	return append(out, Server{
		Name: srv.Name, Account: label, Description: srv.Title, Transport: string(srv.Transport), Eager: !g.fleet.Lazy(srv.Name),
		Off: srv.Disabled || srv.Problem != nil, Whole: c.Scope.Whole(srv.Name, label),
	})
}

// Status returns the state of the servers that exist for a caller, or of the named
// one ("server" or "server@account"): of the connections of the caller's principal,
// never those of others.
func (g *Gate) Status(ctx context.Context, c Caller, name string) []ServerStatus {
	visible := map[string]bool{}
	for _, s := range g.Servers(ctx, c) {
		visible[scopeName(s.Name, s.Account)] = true
	}
	var out []ServerStatus
	for _, s := range g.fleet.StatusOf(c.principal()) {
		label := scopeName(s.Name, s.Account)
		if s.Lane != "" || !visible[label] || name != "" && name != label {
			continue
		}
		if !c.Scope.Whole(s.Name, s.Account) {
			s.Tools = g.countTools(ctx, c, s)
		}
		s.CacheEntries = 0
		if srv, ok := g.fleet.Server(s.Name); ok && srv.Problem != nil {
			s.LastError = "its definition cannot be used; a person has to correct it" // the problem names files
		}
		out = append(out, s)
	}
	return out
}

// countTools is how many tools of a server exist for a caller.
func (g *Gate) countTools(ctx context.Context, c Caller, s ServerStatus) int {
	l, _, err := g.Known(ctx, c, Key{Server: s.Name, Account: s.Account})
	if err != nil {
		return 0
	}
	return len(l.Tools)
}

// Resolve returns the key of an account ("server" or "server@label") if it exists
// for the caller. The texts of the key are the program's own, not parts of name. A
// refusal is recorded; method says what for.
func (g *Gate) Resolve(ctx context.Context, c Caller, name, method string) (Key, error) {
	server, label, labelled := strings.Cut(name, "@")
	k := c.own(Key{Server: server, Account: strings.Clone(label)})
	if labelled && label == "" {
		k.Server = name
		return Key{}, g.unknownServer(&c, k, false)
	}
	if _, err := g.admit(ctx, &c, k, method, ""); err != nil {
		return Key{}, err
	}
	k.Server, _ = g.fleet.Named(server)
	return k, nil
}

// Enter decides whether a caller may use a method of a server, for what is answered
// without the server. A refusal is recorded.
func (g *Gate) Enter(ctx context.Context, c Caller, k Key, method, tool string) error {
	_, err := g.admit(ctx, &c, c.own(k), method, tool)
	return err
}

// Describe decides whether a caller may read the definition of a tool, for what is
// answered without the server. A refusal is recorded.
func (g *Gate) Describe(ctx context.Context, c Caller, k Key, tool string) error {
	k = c.own(k)
	_, err := g.allow(ctx, &c, k, needTool, tool)
	if err != nil {
		g.refused(&c, k, mcp.MethodToolsList, tool, err)
	}
	return err
}

// Missing records a refusal if something that a caller named is not listed because
// of the scope or the rules. part returns the tool or prompt that the caller named if
// it is of an account.
func (g *Gate) Missing(ctx context.Context, c Caller, method string, part func(server, account string) (name string, ok bool)) {
	for _, server := range g.fleet.Names() {
		accounts := []string{""}
		if g.opt.Accounts != nil {
			accounts = append(accounts, g.opt.Accounts.Labels(c.principal(), server)...)
		}
		for _, account := range accounts {
			name, ok := part(server, account)
			if !ok {
				continue
			}
			tool := name
			if method != mcp.MethodToolsCall {
				tool = "" // rules name tools only
			}
			k := c.own(Key{Server: server, Account: account})
			if _, err := g.allow(ctx, &c, k, needOf(method), tool); err != nil {
				g.refused(&c, k, method, name, err) // the caller learns only that it is unknown
			}
		}
	}
}

// Version is the protocol version that a server was last seen to speak; empty when
// that is not known.
func (g *Gate) Version(ctx context.Context, c Caller, k Key) (string, error) {
	k = c.own(k)
	if _, err := g.allow(ctx, &c, k, needServer, ""); err != nil {
		return "", err
	}
	cat, _ := g.line(g.account(k), k).Cached()
	return cat.Version, nil
}

// Connect returns the protocol version of the connection of k, connecting if need
// be; see [host.Host.Version].
func (g *Gate) Connect(ctx context.Context, c Caller, k Key) (string, error) {
	k = c.own(k)
	if _, err := g.admit(ctx, &c, k, mcp.MethodInitialize, ""); err != nil {
		return "", err
	}
	return g.fleet.Version(ctx, k)
}

// Refresh brings one list of a server up to date, see [host.Host.List].
func (g *Gate) Refresh(ctx context.Context, c Caller, k Key, method string) error {
	k = c.own(k)
	if _, err := g.admit(ctx, &c, k, method, ""); err != nil {
		return err
	}
	_, err := g.fleet.List(ctx, k, method)
	return err
}

// Listen subscribes at a server until ctx ends, see [host.Host.Listen].
// Subscriptions to anything but tools need the whole server.
func (g *Gate) Listen(ctx context.Context, c Caller, k Key, want Subscription, on func(mcp.Message)) error {
	k = c.own(k)
	if _, err := g.admit(ctx, &c, k, listenMethod(want), ""); err != nil {
		return err
	}
	return g.fleet.Listen(ctx, k, want, on)
}

// MayListen reports whether Listen would be allowed now. Nothing is recorded.
func (g *Gate) MayListen(ctx context.Context, c Caller, k Key, want Subscription) error {
	_, err := g.allow(ctx, &c, c.own(k), needOf(listenMethod(want)), "")
	return err
}

// listenMethod is the method by whose rule a subscription is decided.
func listenMethod(want Subscription) string {
	if want.Prompts || want.Resources || len(want.URIs) > 0 {
		return mcp.MethodSubscribe
	}
	return mcp.MethodListen
}

// Notify sends a notification over the connection of k, if there is one.
func (g *Gate) Notify(ctx context.Context, c Caller, k Key, method string, params []byte) error {
	k = c.own(k)
	if _, err := g.admit(ctx, &c, k, mcp.MethodInitialize, ""); err != nil {
		return err
	}
	return g.fleet.Notify(ctx, k, method, params)
}

// Release closes the connection of a session. Nothing is asked for it: a caller may
// always give up what it holds.
func (g *Gate) Release(k Key) { g.fleet.Release(k) }
