package gateway

import (
	"net/http"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/wire"
)

// get opens the stream for what belongs to no request.
func (g *Gateway) get(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint) {
	if _, stream, _ := stream.Accepts(r.Header); !stream {
		http.Error(w, "Accept must allow text/event-stream", http.StatusNotAcceptable)
		return
	}
	if r.Header.Get(wire.HeaderSession) == "" {
		g.getSSE(w, r, id, e)
		return
	}
	s := g.session(w, r, id, e)
	if s == nil {
		return
	}
	u := g.limits.openStream(id.Principal)
	if u == nil {
		g.tooMany(w, "too many streams at once")
		return
	}
	defer u.streams.Add(-1)
	defer s.begin()()
	if t, n := s.tracks.Find(r.Header.Get(wire.HeaderLastEvent)); t != nil {
		g.replayStream(w, r, s, t, n)
		return
	}
	g.sendQueue(w, r, s, nil)
}

// pump carries what waits for a session to the agent until either leaves.
func (g *Gateway) sendQueue(w http.ResponseWriter, r *http.Request, s *session, first []byte) {
	b := s.out.(*stream.Queue)
	rc := http.NewResponseController(w)
	stream.StartEvents(w)
	w.WriteHeader(http.StatusOK)
	if first == nil {
		first = stream.Comment
	}
	write := func(frame []byte) error {
		_ = rc.SetWriteDeadline(time.Now().Add(stream.WriteTimeout)) // not every writer has one
		if _, err := w.Write(frame); err != nil {
			return err
		}
		return rc.Flush()
	}
	alive := time.NewTicker(g.opt.KeepAlive)
	defer alive.Stop()
	for err := write(first); err == nil; {
		select {
		case <-b.Wake:
			frames, _ := b.Take()
			for len(frames) > 0 && err == nil {
				if err = write(wire.AppendEvent(nil, "", frames[0])); err == nil {
					frames = frames[1:]
				}
			}
			if len(frames) > 0 {
				b.PutBack(frames)
			}
		case <-alive.C:
			err = write(stream.Comment)
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		case <-g.draining:
			return
		}
	}
}

// carryOn carries on the stream that a broken connection cut off.
func (g *Gateway) replayStream(w http.ResponseWriter, r *http.Request, s *session, t *stream.Replay, n int) {
	rc := http.NewResponseController(w)
	stream.StartEvents(w)
	w.WriteHeader(http.StatusOK)
	alive := time.NewTicker(g.opt.KeepAlive)
	defer alive.Stop()
	write := func(frame []byte) error {
		_ = rc.SetWriteDeadline(time.Now().Add(stream.WriteTimeout)) // not every writer has one
		if _, err := w.Write(frame); err != nil {
			return err
		}
		return rc.Flush()
	}
	for err := write(stream.Comment); err == nil; {
		frames, next, done := t.Since(n)
		for _, f := range frames {
			if err = write(f); err != nil {
				return
			}
		}
		n = next
		if done {
			s.tracks.End(t)
			return
		}
		select {
		case <-t.Wake:
		case <-alive.C:
			err = write(stream.Comment)
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}
