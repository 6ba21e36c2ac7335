package gateway

import (
	"sync"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// heldBytes counts the bytes that are held for clients that do not read or are away:
// questions of suspended calls, what waits for the stream of a session or a request,
// and what a broken stream is resumed from. Another one counts the bodies of requests.
type heldBytes struct {
	max, share int // of all, of one principal

	mu  sync.Mutex // guards what follows
	all int
	of  map[string]int // by principal
}

// take counts n bytes more and reports whether there is room for them.
func (h *heldBytes) take(principal string, n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all+n > h.max || h.of[principal]+n > h.share {
		return false
	}
	if h.of == nil {
		h.of = map[string]int{}
	}
	h.all += n
	h.of[principal] += n
	return true
}

// give takes n bytes off again.
func (h *heldBytes) give(principal string, n int) {
	if n == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all -= n
	if h.of[principal] -= n; h.of[principal] <= 0 {
		delete(h.of, principal)
	}
}

func (h *heldBytes) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

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
	if !g.bodies.take(principal, int(n)) {
		return nil, false
	}
	return func() { g.bodies.give(principal, int(n)) }, true
}

// holdAnswer counts the n bytes of a large answer, for the caller to give back: a
// client that does not read must not make us keep many of them. Without room the
// answer becomes an error.
func (g *Gateway) holdAnswer(principal string, a *answer) (n int) {
	if len(a.result) <= largeBody {
		return 0
	}
	if !g.held.take(principal, len(a.result)) {
		g.count.limited.Add(1)
		*a = failure(mcp.CodeInternal, "too many large answers wait to be read; read them, then try again")
		return 0
	}
	return len(a.result)
}

func (g *Gateway) initHeld() {
	g.held.max, g.held.share = limit.HeldBytes, limit.HeldBytesPerPrincipal
	g.bodies.max, g.bodies.share = max(limit.BodyBytes, 2*int(g.opt.MaxBody)), max(limit.BodyBytesPerPrincipal, int(g.opt.MaxBody))
}
