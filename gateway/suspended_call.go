package gateway

import (
	"context"

	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/suspend"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// runSuspendable runs a request apart from the one that brought it.
func (g *Gateway) runSuspendable(ctx context.Context, q *request) response {
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	room := func() bool { return g.suspended.Room(q.agent.Principal) }
	c := suspend.New(q.agent.Principal, q.subject(), q.agent.Capabilities, &g.held, room, cancel)
	attach(c, q)
	g.bindCall(c, lifetime.Of(ctx))
	if !g.spawn(func() {
		defer context.AfterFunc(g.life, func() { cancel(suspend.ErrClientLeft) })()
		defer cancel(nil)
		defer c.Unbind()
		req := q.Request
		req.OnNotification, req.OnRequest = c.Notify, c.Ask
		c.Finish(q.end.view.Do(run, q.agent, req))
	}) {
		cancel(nil)
		c.Unbind()
		return response{none: true}
	}
	return g.await(ctx, q, c)
}

// await waits for the call to end or to ask, on behalf of q.
func (g *Gateway) await(ctx context.Context, q *request, c *suspend.Call) response {
	for {
		select {
		case <-c.Done:
			return g.settle(ctx, q, c.Result, c.Err)
		case <-c.Asked:
			c.Gather(ctx)
			if a, ok := g.suspend(q, c); ok {
				return a
			}
		case <-ctx.Done():
			c.Cancel(suspend.ErrClientLeft) // the agent left, and with it the reason for the call
			return response{none: true}
		}
	}
}

// bindCall makes the call end with the token of the request that waits for it now.
func (g *Gateway) bindCall(c *suspend.Call, life lifetime.Lifetime) {
	if life.Endless() {
		return
	}
	c.EndWith(life.Hold(func(cause error) {
		c.Cancel(cause)
		g.suspended.Drop(c)
	}))
}

// attach makes q the request that hears of the call.
func attach(c *suspend.Call, q *request) {
	token, _ := jsonx.Get(q.p.Meta, mcp.MetaProgress)
	c.Attach(q.out, token, q.level)
}

// suspend puts the call aside and tells the client what the server asks. False: there is
// no question any more.
func (g *Gateway) suspend(q *request, c *suspend.Call) (response, bool) {
	requests, round, ok := c.Suspend()
	if !ok {
		return response{}, false
	}
	if !g.suspended.Add(c) {
		c.Cancel(suspend.ErrExpired)
		return failure(mcp.CodeInternal, "too many calls wait for an answer of their agent"), true
	}
	g.count.suspended.Add(1)
	st := state{Kind: stateSuspended, Call: c.ID, Round: round, Peer: g.opt.Peer, Request: c.Subject}
	out := append([]byte(`{"resultType":"input_required","inputRequests":{`), requests...)
	out = append(out, `},"requestState":`...)
	out = jsonx.AppendText(out, g.seal.seal(st, owner(q.agent), g.opt.SuspendTime))
	return response{result: append(out, '}')}, true
}

// resume gives the call that a retry is about the client's answers, and waits for it.
func (g *Gateway) resume(ctx context.Context, q *request, st state) response {
	c := g.suspended.Take(st.Call, st.Round, st.Request)
	if c == nil {
		return failure(mcp.CodeInvalidParams, "%v", errBadState)
	}
	g.count.resumed.Add(1)
	attach(c, q)
	g.bindCall(c, lifetime.Of(ctx))
	c.Answer(member(q.Params, "inputResponses"))
	return g.await(ctx, q, c)
}
