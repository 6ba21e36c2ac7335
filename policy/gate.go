package policy

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy/budget"
	"github.com/usher-mcp/usher/policy/pins"
	"github.com/usher-mcp/usher/vault"
)

// Key says whom a connection belongs to; rooms that may not import host use it
// under this name.
type Key = host.Key

// Request is a request other than a tool call.
type Request = host.Request

// Catalog is what a server offers, as last known.
type Catalog = host.Catalog

// Options steer a Gate. The zero value works: everything is allowed without a
// limit, and tools are pinned.
type Options struct {
	// Config holds rules, budgets and the options of the servers. Default: none.
	Config *config.Config
	// Hook is the first hook, see [Gate.SetHook]. Default: nobody is asked.
	Hook Hook
	// Lock stands in for the pins of servers that have none yet. Default: the
	// first list of a server is believed.
	Lock *pins.Lock
	// CacheBytes bounds all cached results together. Default [DefaultCache].
	CacheBytes int64
	// Accounts knows which named accounts exist. Nil: every name does.
	Accounts Accounts
	// Logins starts and completes logins. Nil: a person has to do that elsewhere.
	Logins Logins
	// OnCall hears of every call of a tool and use of a prompt or resource when it
	// has ended, and of every refusal of any request. It must not block. Default:
	// nobody does, and nothing is measured.
	OnCall func(Finished)
	// OnNote hears once of each tool that is new, changed, renamed or gone. It
	// must not block. Default: they are logged only.
	OnNote func(Key, pins.Note)
	// Tracer makes a span of every answer from the cache; requests to servers have
	// theirs in upstream. Nil: none.
	Tracer trace.Tracer
	// Log hears warnings. Default: discard.
	Log *slog.Logger
}

// line is the way to the server of one key, see [host.Line].
type line interface {
	Do(ctx context.Context, req host.Request) ([]byte, error)
	Tools(ctx context.Context) (host.Catalog, error)
	Cached() (host.Catalog, bool)
	Forget()
}

// Gate is the only way to a server: every verb takes the [Caller] it is for and
// begins with the same decision, see allow.go. All methods may be used concurrently.
type Gate struct {
	dial    func(Key) line
	fleet   fleet // nil in tests that only call
	store   vault.Store
	opt     Options
	started time.Time

	rules    atomic.Pointer[rules]
	hook     atomic.Pointer[Hook] // nil: none
	made     atomic.Uint64        // sets of rules
	budgets  *budget.Budgets
	accounts accounts
	cache    *cache
	flights  flights
	pages    pages
}

// NewGate returns a gate in front of h. What it has to keep goes to store; without
// one it is kept for the life of the gate. Close it, before the store.
func NewGate(h *host.Host, store vault.Store, opt *Options) *Gate {
	g := newGate(func(k Key) line { return h.Line(k) }, store, opt)
	g.fleet = h
	return g
}

func newGate(dial func(Key) line, store vault.Store, opt *Options) *Gate {
	g := &Gate{dial: dial, store: store, started: time.Now()}
	if opt != nil {
		g.opt = *opt
	}
	if g.opt.Log == nil {
		g.opt.Log = slog.New(slog.DiscardHandler)
	}
	var counters vault.Counters
	if store == nil {
		g.store = vault.NewMemory()
	} else {
		counters = store
	}
	g.SetHook(g.opt.Hook)
	g.budgets = budget.New(counters, g.opt.Log)
	g.cache = newCache(g.opt.CacheBytes)
	g.Configure(g.opt.Config)
	return g
}

// Configure replaces rules, budgets and the options of the servers, all at once
// for the calls that begin from now on. Nil means none.
func (g *Gate) Configure(c *config.Config) {
	if c == nil {
		c = &config.Config{}
	}
	r := compileRules(c.Usher, c.Servers)
	r.number = g.made.Add(1)
	g.rules.Store(r)
	g.budgets.Configure(c.Usher.Budgets)
	g.accounts.keep(func(id accountID) bool { return r.servers[id.server] != nil || g.fleet == nil })
}

// Register adds the options of one server that no file has, or replaces them. What
// is kept of its answers is dropped.
func (g *Gate) Register(s config.Server) {
	g.swapRules(func(old *rules) *rules { return old.with(s) })
	g.Forget(s.Name)
}

// Unregister removes the options of a server that was removed, and all that is kept
// in memory about it. Pins and budgets stay.
func (g *Gate) Unregister(server string) {
	g.swapRules(func(old *rules) *rules { return old.without(server) })
	g.Forget(server)
	g.accounts.keep(func(id accountID) bool { return id.server != server })
}

func (g *Gate) swapRules(change func(*rules) *rules) {
	for {
		old := g.rules.Load()
		next := change(old)
		next.number = g.made.Add(1)
		if g.rules.CompareAndSwap(old, next) {
			return
		}
	}
}

// Close gives back what is reserved of budgets and ends shared calls.
func (g *Gate) Close(ctx context.Context) {
	g.flights.close()
	g.budgets.Close(ctx)
	g.cache.close()
}

// Call is one call of a tool.
type Call struct {
	// Request holds the params, callbacks and limits of the call. Its Params are the
	// whole params as a client sent them, for what must arrive unchanged: they replace
	// Arguments, and their name must be Tool. Its Method is not used. A call with an
	// Answer is neither answered from the cache nor kept.
	Request
	Caller Caller
	Key    Key // its Principal is the Caller's
	// Tool is the name of the tool, as listed or as the server itself calls it.
	Tool string
	// Arguments are raw JSON; nil stands for {}.
	Arguments []byte
}

// Result is an answer. Raw may be shared with others: do not change it.
type Result struct {
	Raw []byte
	// Cached: it answered an earlier request, or an identical one at the same time.
	Cached bool
	// Stale: it is a list that may be out of date, because the server could not be
	// asked.
	Stale bool
	// TTL is how much longer it may be kept, 0 when it may not; Public says
	// whether for everybody.
	TTL    time.Duration
	Public bool
}

// Call runs a tool, if it may. Refusals are [ErrDenied], [ErrBudget] and
// [ErrSchemaChanged]; a *mcp.Error is an answer of the server or says that the
// params are ambiguous; the rest are errors of host.
func (g *Gate) Call(ctx context.Context, c Call) (Result, error) {
	c.Key = c.Caller.own(c.Key)
	if g.opt.OnCall == nil {
		return g.call(ctx, &c)
	}
	began := time.Now()
	res, err := g.call(ctx, &c)
	g.opt.OnCall(finished(&c, time.Since(began), res, err))
	return res, err
}

// call is the order of the gate: allow → budget → pin → cache → host.
func (g *Gate) call(ctx context.Context, c *Call) (Result, error) {
	if c.Tool == "" {
		return Result{}, mcp.Errorf(mcp.CodeInvalidParams, "the call names no tool")
	}
	var q query
	q.account = g.accounts.find(c.Key) // nil for the first request of an account
	tool, err := g.allowCall(ctx, c, q.account)
	if err != nil {
		return Result{}, err
	}
	if err := q.fill(c, tool); err != nil {
		return Result{}, err
	}
	if err := g.askHookCall(ctx, &q, c.Tool); err != nil {
		return Result{}, err
	}
	if q.account == nil {
		q.account = g.account(c.Key)
	}
	if err := g.budgets.Charge(ctx, c.Caller.Session, q.account.server.budget(g.budgets, c.Key.Server)); err != nil {
		return Result{}, err
	}
	if err := g.checkPin(ctx, q.account, c, tool); err != nil {
		return Result{}, err
	}
	if res, ok := g.lookup(&q); ok {
		g.traceHit(ctx, &q)
		return res, nil
	}
	return g.forward(ctx, &q)
}

// Do sends a request other than a tool call, if the caller may, and answers from the
// cache where the server allowed it. A tools/call goes the way of Call. Methods and
// members of params that only resemble those that decisions are made on are refused:
// the server may read them as such.
func (g *Gate) Do(ctx context.Context, c Caller, k Key, req Request) (Result, error) {
	k = c.own(k)
	if req.Method == mcp.MethodToolsCall {
		return g.doCall(ctx, c, k, req)
	}
	if werr := mcp.CheckMethod(req.Method); werr != nil {
		return Result{}, werr
	}
	if _, werr := req.ReadParams(); werr != nil {
		return Result{}, werr
	}
	if g.opt.OnCall == nil {
		return g.send(ctx, &c, k, req)
	}
	began := time.Now()
	res, err := g.send(ctx, &c, k, req)
	if req.Method == mcp.MethodPromptsGet || req.Method == mcp.MethodResourcesRead || err != nil && isRefusal(err) {
		g.opt.OnCall(used(c, k, req, time.Since(began), res, err))
	}
	return res, err
}

// send also filters what a server lists.
func (g *Gate) send(ctx context.Context, c *Caller, k Key, req Request) (Result, error) {
	res, err := g.do(ctx, c, k, req)
	if err == nil && req.Method == mcp.MethodToolsList {
		res.Raw, err = g.toolsPage(ctx, c, k, res.Raw)
	}
	return res, err
}

func (g *Gate) do(ctx context.Context, c *Caller, k Key, req Request) (Result, error) {
	if _, err := g.allow(ctx, c, k, needOf(req.Method), ""); err != nil {
		return Result{}, err
	}
	q := &query{key: k, request: req, account: g.account(k), topic: topic{k.Server, req.Method, ""}}
	q.kept = cacheable(req.Method) && req.Answer == nil
	if res, ok := g.lookup(q); ok {
		g.traceHit(ctx, q)
		return res, nil
	}
	return g.forward(ctx, q)
}

func (g *Gate) doCall(ctx context.Context, c Caller, k Key, req Request) (Result, error) {
	p, werr := req.ReadParams()
	if werr != nil {
		return Result{}, werr
	}
	return g.Call(ctx, Call{Request: req, Caller: c, Key: k, Tool: p.Name})
}

// CacheStats counts what the cache did.
func (g *Gate) CacheStats() CacheStats { return g.cache.stats() }

// CacheEntries is how many results of a server are kept.
func (g *Gate) CacheEntries(server string) int { return g.cache.entries(server) }

// Budgets says how far the budgets are used up: first the one of all servers
// together, then those of the servers that were called.
func (g *Gate) Budgets() []BudgetStatus { return g.budgets.Status() }

// Pins returns the pins of a principal.
func (g *Gate) Pins(principal string) *pins.Store { return pins.NewStore(g.store, principal) }
