package policy

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// query is one request on its way through cache and host.
type query struct {
	topic
	key     Key
	request Request
	account *accountState
	kept    bool // its result may be kept, if the server says so

	// Filled by lookup.
	marks  marks
	keyed  bool // own and shared are set
	missed bool // it was counted as a miss
	own    cacheKey
	shared cacheKey // the entry for everybody
	stale  *cached  // an outdated list, for when the server fails
}

// fill takes over a call, and checks that what was decided on is what will be sent.
func (q *query) fill(c *Call, tool string) error {
	q.key, q.topic, q.kept = c.Key, topic{c.Key.Server, mcp.MethodToolsCall, tool}, c.Answer == nil
	q.request = c.Request
	q.request.Method = mcp.MethodToolsCall
	if c.Params == nil {
		params, err := buildParams(tool, c.Arguments)
		q.request.Params = params
		return err
	}
	p, werr := q.request.ReadParams()
	switch {
	case werr != nil:
		return werr
	case p.Name != c.Tool:
		return mcp.Errorf(mcp.CodeHeaderMismatch, "the call is for %q, but its params name %q", c.Tool, p.Name)
	}
	if tool != c.Tool {
		q.request.Params = jsonx.Set(c.Params, "name", jsonx.Quote(tool))
	}
	return nil
}

func buildParams(tool string, arguments []byte) ([]byte, error) {
	if arguments == nil {
		arguments = []byte("{}")
	}
	if jsonx.TypeOf(arguments) != "object" {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "arguments is %s, not an object", jsonx.TypeOf(arguments))
	}
	if err := jsonx.Valid(arguments); err != nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "arguments: %v", err)
	}
	out := make([]byte, 0, len(tool)+len(arguments)+32)
	out = jsonx.AppendText(append(out, `{"name":`...), tool)
	out = append(out, `,"arguments":`...)
	return append(append(out, arguments...), '}'), nil
}

// lookup answers from the cache. It costs next to nothing for what never declared
// a ttlMs.
func (g *Gate) lookup(q *query) (Result, bool) {
	if !q.kept {
		return Result{}, false
	}
	q.marks = q.account.now(q.method)
	if !q.account.server.declared(q.topic) || !q.setKeys() {
		return Result{}, false
	}
	for _, k := range [...]cacheKey{q.own, q.shared} {
		e, fresh := g.cache.get(k)
		switch {
		case fresh:
			g.cache.hits.Add(1)
			return Result{Raw: e.raw, Cached: true, TTL: time.Until(e.until), Public: e.public}, true
		case e != nil && isList(q.method) && q.stale == nil:
			q.stale = e
		}
	}
	q.missed = true
	g.cache.misses.Add(1)
	return Result{}, false
}

func (q *query) setKeys() bool {
	if q.keyed {
		return true
	}
	sum, ok := paramsSum(q.request.Params)
	if !ok {
		q.kept = false
		return false
	}
	who := identity{q.account.id.principal, q.account.id.account}
	q.own = cacheKey{topic: q.topic, who: who, sum: sum, mark: q.marks.own}
	q.shared = cacheKey{topic: q.topic, sum: sum, mark: q.marks.shared}
	q.keyed = true
	return true
}

// forward asks the host. Identical requests whose answer is likely to be kept
// share one.
func (g *Gate) forward(ctx context.Context, q *query) (Result, error) {
	if q.keyed {
		shared := *q // what outlives the call must not keep the others on the heap
		return g.forwardShared(ctx, &shared)
	}
	return g.settle(q, g.ask(ctx, q, ctx))
}

func (g *Gate) forwardShared(ctx context.Context, q *query) (Result, error) {
	// The request may outlive this caller, whose bytes these are.
	q.request.Params = bytes.Clone(q.request.Params)
	a, joined := g.flights.do(ctx, q.own, func(run context.Context) answer { return g.ask(run, q, ctx) })
	switch {
	case !joined, ctx.Err() != nil:
		return g.settle(q, a)
	case a.fresh.TTL > 0:
		g.cache.collapsed.Add(1)
		return Result{Raw: a.raw, Cached: true, TTL: a.fresh.TTL, Public: a.fresh.Public}, nil
	}
	// The other one's answer was for that one only: an error, or not to be kept.
	return g.settle(q, g.ask(ctx, q, ctx))
}

// ask sends the request, and keeps the answer if the server says so and nobody was
// asked for it. asker is the one for whom it is sent: once that context has ended
// nobody there is told or asked any more.
func (g *Gate) ask(ctx context.Context, q *query, asker context.Context) answer {
	req := q.request
	var asked *atomic.Bool
	if q.kept && req.OnRequest != nil {
		asked = new(atomic.Bool)
		req.OnRequest = noticed(asked, asker, req.OnRequest)
	}
	if ctx != asker && req.OnNotification != nil {
		tell := req.OnNotification
		req.OnNotification = func(m mcp.Message) {
			if asker.Err() == nil {
				tell(m)
			}
		}
	}
	raw, err := g.line(q.account, q.key).Do(ctx, req)
	a := answer{raw: raw, err: err}
	if err != nil || !q.kept || asked != nil && asked.Load() {
		return a
	}
	if a.fresh = freshness(raw); a.fresh.TTL > 0 && q.setKeys() {
		g.keep(q, a)
	}
	return a
}

type responder = func(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error)

// noticed notes that the server asked something: its answer then depends on what
// it was told, and answers nobody else.
func noticed(asked *atomic.Bool, asker context.Context, answer responder) responder {
	return func(ctx context.Context, method string, params []byte) ([]byte, *mcp.Error) {
		asked.Store(true)
		if asker.Err() != nil {
			return nil, mcp.Errorf(mcp.CodeInternal, "the caller has left")
		}
		return answer(ctx, method, params)
	}
}

func (g *Gate) keep(q *query, a answer) {
	q.account.server.declare(q.topic)
	if !q.missed { // the first of its topic: it was not known that it can be kept
		g.cache.misses.Add(1)
	}
	k := q.own
	if a.fresh.Public {
		k = q.shared
	}
	g.cache.put(k, a.raw, a.fresh)
}

// settle turns what came back into a result; an outdated list stands in when the
// server could not be asked.
func (g *Gate) settle(q *query, a answer) (Result, error) {
	if a.err == nil {
		return Result{Raw: a.raw, TTL: a.fresh.TTL, Public: a.fresh.Public}, nil
	}
	if q.stale == nil || final(a.err) {
		return Result{}, a.err
	}
	g.cache.stale.Add(1)
	return Result{Raw: q.stale.raw, Cached: true, Stale: true, Public: q.stale.public}, nil
}

// final reports whether nothing can stand in for an answer: the server gave one,
// nobody waits for it, or the server must not be used.
func final(err error) bool {
	var said *mcp.Error
	if errors.As(err, &said) {
		return true
	}
	for _, e := range [...]error{context.Canceled, host.ErrHeldBack, host.ErrDisabled, host.ErrClosed, host.ErrUnknownServer} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
