package gateway

import (
	"context"
	"net/http"
	"net/url"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/mcp"
)

// The transport of revision 2024-11-05: a GET opens a stream that names a URL, and
// answers to what is posted there come on the stream.

// getOld opens such a stream. Until the handshake its session only keeps the place.
func (g *Gateway) getSSE(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint) {
	u := g.limits.openStream(id.Principal)
	if u == nil {
		g.tooMany(w, "too many streams at once")
		return
	}
	defer u.streams.Add(-1)
	s := g.newSession(id, e, stream.NewQueue(&g.held, id.Principal), nil)
	s.sse, s.busy = true, 1 // as long as the stream is open
	if !g.sessions.add(s) {
		s.close(errEnded)
		g.tooMany(w, "too many sessions")
		return
	}
	defer g.sessions.endID(s.id)
	defer s.cancel(errEnded)
	g.sendQueue(w, r, s, []byte("event: endpoint\ndata: "+r.URL.Path+"?sessionId="+url.QueryEscape(s.id)+"\n\n"))
}

// postOld takes messages whose answers go to the stream.
func (g *Gateway) postSSE(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint, name string, messages []mcp.Message) {
	s := g.sessions.find(name, id, e)
	if s == nil || !s.sse {
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	}
	life := lifetime.Of(r.Context())
	for i := range messages {
		m := &messages[i]
		if m.Kind() != mcp.KindRequest {
			s.take(m)
			continue
		}
		u := g.limits.call(id.Principal)
		if u == nil {
			g.tooMany(w, "too many requests at once; try again in a second")
			return
		}
		if !g.spawn(func() {
			defer u.calls.Add(-1)
			if a := g.serveSSE(s, id, m, life); !a.none {
				s.out.Send(a.append(nil, m.ID))
			}
		}) {
			u.calls.Add(-1)
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// serveOld answers a request. The handshake puts a session in the place that was
// kept for it.
func (g *Gateway) serveSSE(s *session, id authn.Identity, m *mcp.Message, life lifetime.Lifetime) response {
	if m.Method != mcp.MethodInitialize {
		return s.serve(m, s.out, life)
	}
	real := g.newSession(id, s.end, s.out, m.Params)
	real.id, real.sse, real.busy = s.id, true, 1
	real.cancel(nil)
	real.ctx, real.cancel = context.WithCancelCause(s.ctx)
	a := real.initialize(real.ctx)
	if a.err == nil && !a.none && !g.sessions.swap(s, real) {
		a = failure(mcp.CodeInvalidRequest, "the session is initialized already")
	}
	if a.err != nil {
		real.cancel(errEnded) // what waits for the stream is of the place that was kept
		real.end.view.Close(real.agent)
	}
	return a
}
