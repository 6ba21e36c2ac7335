package gateway

import (
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// smallBody is what every request may have without being counted.
const smallBody = 64 << 10

// holdBody counts the body of a request until the result is called. False: there are
// too many large ones.
func (g *Gateway) holdBody(principal string, length int64) (release func(), ok bool) {
	n := length
	if n < 0 {
		n = g.opt.MaxBody // it may have as much
	}
	if n <= smallBody || n > g.opt.MaxBody { // the latter is refused unread
		return func() {}, true
	}
	if !g.bodies.Take(principal, int(n)) {
		return nil, false
	}
	return func() { g.bodies.Give(principal, int(n)) }, true
}

// holdAnswer counts the n bytes of a large answer, for the caller to give back: a
// client that does not read must not make us keep many of them. Without room the
// answer becomes an error.
func (g *Gateway) holdAnswer(principal string, a *response) (n int) {
	if len(a.result) <= stream.LargeBody {
		return 0
	}
	if !g.held.Take(principal, len(a.result)) {
		g.count.limited.Add(1)
		*a = failure(mcp.CodeInternal, "too many large answers wait to be read; read them, then try again")
		return 0
	}
	return len(a.result)
}

func (g *Gateway) initHeld() {
	g.held.Init(limit.HeldBytes, limit.HeldBytesPerPrincipal)
	g.bodies.Init(max(limit.BodyBytes, 2*int(g.opt.MaxBody)), max(limit.BodyBytesPerPrincipal, int(g.opt.MaxBody)))
}
