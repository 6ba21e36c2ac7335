package fake

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
)

// newStream makes a stream that can be resumed while the session lives.
func (sess *session) newStream() *stream {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.lastStream++
	st := newStream("s" + strconv.Itoa(sess.lastStream))
	_, ids := sess.srv.sw.get("event-ids")
	if v, _ := sess.srv.sw.get("sse-drop"); ids || v == "ids" {
		sess.streams[st.id] = st
	}
	return st
}

// count counts a request of the session.
func (sess *session) count() int {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	sess.requests++
	return sess.requests
}

// get opens the stream for messages that belong to no request, or takes up a
// stream that was cut off.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	s.noteHTTP(nil, r, EventGet)
	if s.refuse(w, r, "GET") {
		return
	}
	_, stateless := s.sw.get("no-session")
	if _, off := s.sw.get("no-get"); off || stateless {
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		http.Error(w, "not acceptable", http.StatusNotAcceptable)
		return
	}
	id := r.Header.Get(wire.HeaderSession)
	sess := s.session(id)
	switch {
	case id == "":
		http.Error(w, "session id missing", http.StatusBadRequest)
	case sess == nil:
		http.Error(w, "session not found", http.StatusNotFound)
	case r.Header.Get(wire.HeaderLastEvent) != "":
		s.resume(w, r, sess)
	default:
		s.pushStream(w, r, sess)
	}
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request, sess *session) {
	id, after, _ := strings.Cut(r.Header.Get(wire.HeaderLastEvent), "/")
	n, err := strconv.Atoi(after)
	sess.mu.Lock()
	st := sess.streams[id]
	sess.mu.Unlock()
	if st == nil || err != nil {
		http.Error(w, "unknown event id", http.StatusBadRequest)
		return
	}
	s.carry(w, r, sess, st, n)
}

func (s *Server) pushStream(w http.ResponseWriter, r *http.Request, sess *session) {
	st := sess.newStream()
	sess.mu.Lock()
	taken := sess.push != nil
	if !taken {
		sess.push = st
	}
	sess.mu.Unlock()
	if taken {
		http.Error(w, "there is a stream already", http.StatusConflict)
		return
	}
	defer sess.setPush(nil)
	s.note(sess, Entry{Event: EventListening, Method: r.Method})
	s.spawn(func() { s.floods(sess.ctx, st, r.Method, false) })
	s.carry(w, r, sess, st, 0)
}

// carry writes a stream from its n-th event on, until it ends, the client leaves
// or the session is over.
func (s *Server) carry(w http.ResponseWriter, r *http.Request, sess *session, st *stream, n int) {
	flush := func() { _ = http.NewResponseController(w).Flush() }
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush()
	out := eventWriter{w: w, flush: flush}
	resumed := r.Header.Get(wire.HeaderLastEvent) != ""
	if v, ok := s.sw.get("event-ids"); ok || resumed {
		out.ids = st.id
		if !resumed {
			_ = out.open(time.Duration(v.number(10)) * time.Millisecond)
		}
	}
	ctx, stop := joined(r.Context(), sess.ctx)
	defer stop()
	limit, dropping := s.sw.fire("push-drop", r.Method)
	for i := n; ; i++ {
		if dropping && i-n >= limit.number(0) {
			return
		}
		e, err := st.next(ctx, i)
		if err != nil || out.write(e.frame, i+1) != nil || e.final {
			return
		}
	}
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	sess := s.session(r.Header.Get(wire.HeaderSession))
	s.noteHTTP(sess, r, EventDelete)
	if s.refuse(w, r, "DELETE") {
		return
	}
	if sess == nil {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	s.drop(sess)
	w.WriteHeader(http.StatusNoContent)
}
