package fake

import (
	"fmt"
	"io"
	"net/http"

	"github.com/usher-mcp/usher/mcp"
)

// SSEHandler serves the old HTTP+SSE transport: GET opens the stream and names the
// endpoint, POST to that endpoint sends a message whose answer comes on the stream.
func (s *Server) SSEHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch id := r.URL.Query().Get("sessionId"); {
		case r.Method == http.MethodGet:
			s.sseStream(w, r)
		case r.Method == http.MethodPost && id != "":
			s.ssePost(w, r, id)
		default:
			s.noteHTTP(nil, r, EventPost)
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		}
	})
}

func (s *Server) sseStream(w http.ResponseWriter, r *http.Request) {
	s.noteHTTP(nil, r, EventGet)
	if s.refuse(w, r, "GET") {
		return
	}
	ctx, leave := s.join(r.Context())
	defer leave()
	sess := s.open(ctx, "sse", true)
	defer s.drop(sess)
	st := newStream(sess.id)
	sess.setPush(connection{st})
	s.note(sess, Entry{Event: EventListening, Method: r.Method})
	flush := func() { _ = http.NewResponseController(w).Flush() }
	w.Header().Set("Content-Type", "text/event-stream")
	endpoint := r.URL.Path + "?sessionId=" + sess.id
	if v, ok := s.sw.fire("endpoint", r.Method); ok {
		endpoint = string(v)
	}
	if _, ok := s.sw.fire("no-endpoint", r.Method); !ok {
		fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", endpoint)
	}
	flush()
	out := eventWriter{w: w, flush: flush}
	for i := 0; ; i++ {
		e, err := st.next(sess.ctx, i)
		if err != nil || out.write(e.frame, i+1) != nil {
			return
		}
	}
}

func (s *Server) ssePost(w http.ResponseWriter, r *http.Request, id string) {
	sess := s.session(id)
	if sess == nil {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	msg, bad := s.parse(sess, raw)
	if bad != nil {
		writeRPCError(w, http.StatusBadRequest, mcp.ID{}, bad)
		return
	}
	if s.refuse(w, r, msg.Method) {
		return
	}
	if s.holds(r, msg) {
		return
	}
	w.WriteHeader(http.StatusAccepted)
	if msg.Kind() != mcp.KindRequest {
		s.receive(sess, msg, r.Header)
		return
	}
	sess.mu.Lock()
	out := sess.push
	sess.mu.Unlock()
	ex := s.admit(sess, out, msg, r.Header)
	s.spawn(func() { s.serve(sess.ctx, ex) })
}

// connection is a stream that outlives the requests whose answers it carries.
type connection struct{ *stream }

func (c connection) end() {}
