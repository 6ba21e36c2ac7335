package gateway

import (
	"context"
	"net/http"
	"net/url"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/mcp"
)

// The transport of revision 2024-11-05: a GET opens a stream that names a URL, and
// answers to what is posted there come on the stream.

// getOld opens such a stream. Until the handshake its session only keeps the place.
func (g *Gateway) getOld(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint) {
	u := g.limits.of(id.Principal)
	if !take(&u.streams, g.limits.maxStreams) {
		g.tooMany(w, "too many streams at once")
		return
	}
	defer u.streams.Add(-1)
	s := g.newSession(id, e, g.newBacklog(id.Principal), nil)
	s.old, s.busy = true, 1 // as long as the stream is open
	if !g.sessions.add(s) {
		s.close(errEnded)
		g.tooMany(w, "too many sessions")
		return
	}
	defer g.sessions.endID(s.id)
	defer s.cancel(errEnded)
	g.pump(w, r, s, []byte("event: endpoint\ndata: "+r.URL.Path+"?sessionId="+url.QueryEscape(s.id)+"\n\n"))
}

// postOld takes messages whose answers go to the stream.
func (g *Gateway) postOld(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint, name string, messages []mcp.Message) {
	s := g.sessions.find(name, id, e)
	if s == nil || !s.old {
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	}
	life := lifetimeOf(r.Context())
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
			if a := g.serveOld(s, id, m, life); !a.none {
				s.out.send(a.append(nil, m.ID))
			}
		}) {
			u.calls.Add(-1)
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// serveOld answers a request. The handshake puts a session in the place that was
// kept for it.
func (g *Gateway) serveOld(s *session, id authn.Identity, m *mcp.Message, life lifetime) answer {
	if m.Method != mcp.MethodInitialize {
		return s.serve(m, s.out, life)
	}
	real := g.newSession(id, s.end, s.out, m.Params)
	real.id, real.old, real.busy = s.id, true, 1
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
