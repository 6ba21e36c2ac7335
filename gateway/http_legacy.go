package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/gateway/internal/suspend"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// postBatch serves a batch, which one revision has.
func (g *Gateway) postBatch(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint, body []byte) {
	messages, err := splitBatch(body)
	if err != nil {
		g.unreadable(w, err)
		return
	}
	g.count.legacy.Add(1)
	g.postLegacy(w, r, id, e, messages, true)
}

// postLegacy serves messages of the legacy protocol: they belong to a session, and the
// work goes on when the agent hangs up.
func (g *Gateway) postLegacy(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint, messages []mcp.Message, batch bool) {
	if v := r.Header.Get(wire.HeaderVersion); v != "" && !mcp.Known(v) {
		http.Error(w, "protocol version "+quoted(v)+" is not supported", http.StatusBadRequest)
		return
	}
	if r.URL.RawQuery != "" {
		if old := r.URL.Query().Get("sessionId"); old != "" {
			g.postSSE(w, r, id, e, old, messages)
			return
		}
	}
	if messages[0].Method == mcp.MethodInitialize && !batch {
		g.postInitialize(w, r, id, e, &messages[0])
		return
	}
	s := g.session(w, r, id, e)
	if s == nil {
		return
	}
	if batch && s.agent.Version != mcp.V20250326 {
		g.unreadable(w, errors.New("batches are not part of revision "+s.agent.Version))
		return
	}
	defer s.begin()()
	var requests []*mcp.Message
	for i := range messages {
		if m := &messages[i]; m.Kind() == mcp.KindRequest {
			requests = append(requests, m)
		} else {
			s.take(m)
		}
	}
	if len(requests) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p := g.newReply(w, r, id.Principal, s.tracks.Begin(s.agent.Version))
	if batch {
		g.answerBatch(r, s, p, requests)
		return
	}
	g.answerOne(r, s, p, requests[0])
}

func quoted(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return `"` + s + `"`
}

// postInitialize begins a session.
func (g *Gateway) postInitialize(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint, m *mcp.Message) {
	if m.Kind() != mcp.KindRequest {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s := g.newSession(id, e, stream.NewQueue(&g.held, id.Principal), m.Params)
	a := s.initialize(r.Context())
	switch {
	case a.none:
		s.close(suspend.ErrClientLeft)
		return
	case a.err != nil:
		s.close(errEnded)
	case !g.sessions.add(s):
		s.close(errEnded)
		g.tooMany(w, "too many sessions; end some with DELETE")
		return
	default:
		w.Header().Set(wire.HeaderSession, s.id)
	}
	g.newReply(w, r, id.Principal, nil).Finish(http.StatusOK, a.append(nil, m.ID))
}

// session finds the session of a request, or answers it.
func (g *Gateway) session(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint) *session {
	name := r.Header.Get(wire.HeaderSession)
	if name == "" {
		http.Error(w, "the header "+wire.HeaderSession+" is missing; send initialize first", http.StatusBadRequest)
		return nil
	}
	s := g.sessions.find(name, id, e)
	if s == nil {
		http.Error(w, "there is no such session; send initialize again", http.StatusNotFound)
	}
	return s
}

// answerOne runs a request and answers it. When the agent leaves meanwhile the
// request goes on, and the answer is kept if there is a stream that the agent can
// come back to.
func (g *Gateway) answerOne(r *http.Request, s *session, p *stream.Reply, m *mcp.Message) {
	if !g.enterWork() {
		p.Leave()
		return
	}
	defer context.AfterFunc(r.Context(), func() {
		if lifetime.Ended(r.Context()) == nil {
			p.Leave()
		}
	})()
	a := s.serve(m, p, lifetime.Of(r.Context()))
	g.wg.Done()
	if a.none && p.Refuse(lifetime.Ended(r.Context())) {
		return
	}
	g.finish(s, p, m, a)
}

func (g *Gateway) finish(s *session, p *stream.Reply, m *mcp.Message, a response) {
	sent := true
	if a.none {
		p.Finish(http.StatusAccepted, nil) // the agent asked for no answer
	} else {
		defer g.held.Give(s.agent.Principal, g.holdAnswer(s.agent.Principal, &a))
		buf := stream.GetBuffer()
		*buf = a.append((*buf)[:0], m.ID)
		sent = p.Finish(http.StatusOK, *buf)
		stream.Release(buf)
	}
	if sent && p.Track != nil {
		s.tracks.End(p.Track)
	}
}

// delete ends a session. Its agent gets 404 from now on.
func (g *Gateway) delete(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint) {
	s := g.session(w, r, id, e)
	if s == nil {
		return
	}
	g.sessions.end(s)
	w.WriteHeader(http.StatusNoContent)
}
