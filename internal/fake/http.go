package fake

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// Handler serves Streamable HTTP of the legacy and the stateless protocol on one URL.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Origin") != "" && !sameOrigin(r):
			http.Error(w, "origin not allowed", http.StatusForbidden)
		case r.Method == http.MethodPost:
			s.post(w, r)
		case mcp.Stateless(r.Header.Get(wire.HeaderVersion)) && s.speaksModern(), len(s.legacyVersions()) == 0:
			s.noteHTTP(nil, r, strings.ToLower(r.Method))
			w.Header().Set("Allow", "POST")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		case r.Method == http.MethodGet:
			s.get(w, r)
		case r.Method == http.MethodDelete:
			s.delete(w, r)
		default:
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		}
	})
}

func sameOrigin(r *http.Request) bool {
	_, host, _ := strings.Cut(r.Header.Get("Origin"), "://")
	return host == r.Host
}

// Listen serves on a free port of the loopback interface: Streamable HTTP under
// /mcp, old HTTP+SSE under /sse. It returns the base URL and a function that
// closes the server and waits.
func (s *Server) Listen() (url string, stop func(), err error) {
	return s.ListenOn("127.0.0.1:0")
}

// ListenOn is Listen on a given address.
func (s *Server) ListenOn(addr string) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.Handle("/sse", s.SSEHandler())
	hs := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.note(nil, Entry{Event: EventStart, Transport: "http", Detail: l.Addr().String()})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = hs.Serve(l) // ends with http.ErrServerClosed
	}()
	return "http://" + l.Addr().String(), func() {
		s.Close()
		_ = hs.Close()
		<-done
	}, nil
}

func (s *Server) noteHTTP(sess *session, r *http.Request, event string) {
	s.note(sess, Entry{Event: event, Method: r.Method, Transport: "http", Headers: interesting(r.Header)})
}

// post takes one message.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	method := jsonx.GetText(raw, "method")
	if s.refuse(w, r, method) {
		return
	}
	if status := checkHeaders(r.Header); status != 0 {
		s.noteHTTP(nil, r, EventInvalid)
		http.Error(w, http.StatusText(status), status)
		return
	}
	msg, bad := s.parse(nil, raw)
	if bad != nil {
		writeRPCError(w, http.StatusBadRequest, msg.ID, bad)
		return
	}
	_, hasMeta := jsonx.Path(msg.Params, "_meta", mcp.MetaVersion)
	modern := hasMeta || mcp.Stateless(r.Header.Get(wire.HeaderVersion))
	if modern && s.speaksModern() && msg.Method != mcp.MethodInitialize {
		s.postModern(w, r, msg)
		return
	}
	s.postLegacy(w, r, msg)
}

func checkHeaders(h http.Header) int {
	if t, _, err := mime.ParseMediaType(h.Get("Content-Type")); err != nil || t != "application/json" {
		return http.StatusUnsupportedMediaType
	}
	accept := strings.Join(h.Values("Accept"), ",")
	if !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") {
		return http.StatusNotAcceptable
	}
	return 0
}

func writeRPCError(w http.ResponseWriter, status int, id mcp.ID, e *mcp.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(mcp.AppendError(nil, id, e.JSON()))
}

// postModern serves a message of the modern era: one POST, one conversation, and
// a client that hangs up cancels.
func (s *Server) postModern(w http.ResponseWriter, r *http.Request, msg mcp.Message) {
	base, leave := s.join(context.Background())
	defer leave()
	sess := s.open(base, "http", false)
	defer sess.cancel(errStopped)
	if msg.Kind() != mcp.KindRequest {
		s.receive(sess, msg, r.Header)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if _, deaf := s.sw.get("cancelled-ignored"); !deaf {
		unhook := context.AfterFunc(r.Context(), func() { sess.cancel(errCancelled) })
		defer unhook()
	}
	st := newStream("m")
	ex := s.admit(sess, st, msg, r.Header)
	if !ex.modern {
		ex.refused = mcp.Errorf(mcp.CodeInvalidParams, "_meta lacks %s", mcp.MetaVersion)
	}
	if bad := s.checkMirror(ex); bad != nil && (ex.refused == nil || bad.Code == mcp.CodeHeaderMismatch && ex.modern) {
		ex.refused = bad
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.serve(sess.ctx, ex)
	}()
	defer func() { <-done }()
	defer func() {
		if r.Context().Err() == nil {
			sess.cancel(errStopped)
		}
	}()
	s.respond(w, r.Context(), ex, st)
}

// checkMirror compares the headers with the body they mirror.
func (s *Server) checkMirror(ex *exchange) *mcp.Error {
	if !ex.modern {
		return nil
	}
	mismatch := func(name string) *mcp.Error {
		return mcp.Errorf(mcp.CodeHeaderMismatch, "header %s does not match the body", name)
	}
	name, named := ex.p.NameFor(ex.msg.Method)
	switch got, err := wire.DecodeHeader(ex.header.Get(wire.HeaderName)); {
	case ex.header.Get(wire.HeaderVersion) != ex.version:
		return mismatch(wire.HeaderVersion)
	case ex.header.Get(wire.HeaderMethod) != ex.msg.Method:
		return mismatch(wire.HeaderMethod)
	case named && (err != nil || got != name):
		return mismatch(wire.HeaderName)
	}
	if ex.msg.Method != mcp.MethodToolsCall {
		return nil
	}
	return checkParams(s.toolDef(ex.p.Name), ex, mismatch)
}

func checkParams(def []byte, ex *exchange, mismatch func(string) *mcp.Error) *mcp.Error {
	schema, _ := jsonx.Get(def, "inputSchema")
	params, err := wire.HeaderParams(schema)
	if err != nil {
		return nil // nobody can call it correctly
	}
	for _, p := range params {
		want, has := p.Value(ex.p.Arguments)
		got := ex.header.Get(p.Header())
		wantText, _ := wire.DecodeHeader(want)
		gotText, err := wire.DecodeHeader(got)
		if err != nil || has != (len(ex.header.Values(p.Header())) > 0) || (wantText != gotText && !sameNumber(wantText, gotText)) {
			return mismatch(p.Header())
		}
	}
	return nil
}

func sameNumber(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && x == y
}

// postLegacy serves a message of the legacy era: it belongs to a session, and the
// work goes on when the client hangs up.
func (s *Server) postLegacy(w http.ResponseWriter, r *http.Request, msg mcp.Message) {
	version := r.Header.Get(wire.HeaderVersion)
	_, probe := s.sw.get("silent-probe")
	if version != "" && !slices.Contains(s.opts.Versions, version) && !probe {
		s.noteHTTP(nil, r, EventInvalid)
		http.Error(w, "unsupported protocol version "+version, http.StatusBadRequest)
		return
	}
	sess, status := s.legacySession(r, msg)
	if sess == nil {
		s.noteHTTP(nil, r, EventInvalid)
		http.Error(w, http.StatusText(status), status)
		return
	}
	if s.holds(r, msg) {
		return
	}
	if msg.Kind() != mcp.KindRequest {
		s.receive(sess, msg, r.Header)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if sess.id != "" && msg.Method == mcp.MethodInitialize {
		w.Header().Set(wire.HeaderSession, sess.id)
		if v, ok := s.sw.fire("big-session-id", msg.Method); ok {
			w.Header().Set(wire.HeaderSession, strings.Repeat("s", v.number(64)<<10))
		}
	}
	st := sess.newStream()
	ex := s.admit(sess, st, msg, r.Header)
	s.spawn(func() { s.serve(sess.ctx, ex) })
	s.respond(w, r.Context(), ex, st)
}

// legacySession finds or makes the session of a message.
func (s *Server) legacySession(r *http.Request, msg mcp.Message) (*session, int) {
	_, stateless := s.sw.get("no-session")
	id := r.Header.Get(wire.HeaderSession)
	switch {
	case stateless:
		sess := s.open(s.ctx, "http", false)
		sess.version, sess.caps, sess.ready = r.Header.Get(wire.HeaderVersion), []byte("{}"), true
		return sess, 0
	case msg.Method == mcp.MethodInitialize && len(s.legacyVersions()) > 0:
		return s.open(s.ctx, "http", true), 0
	case id == "" && (msg.Method == mcp.MethodDiscover || len(s.legacyVersions()) == 0):
		return s.open(s.ctx, "http", false), 0
	case id == "":
		return nil, http.StatusBadRequest
	}
	sess := s.session(id)
	if sess == nil {
		return nil, http.StatusNotFound
	}
	if v, ok := s.sw.fire("session-lost", msg.Method); ok && msg.Kind() == mcp.KindRequest && sess.count() > v.number(1) {
		s.note(sess, Entry{Event: EventFault, Name: "session-lost"})
		s.drop(sess)
		return nil, http.StatusNotFound
	}
	return sess, 0
}

// errAborted makes net/http close the connection without a word.
var errAborted = http.ErrAbortHandler

// exited reports whether the conversation was ended by a misbehaviour.
func (ex *exchange) exited() bool { return errors.Is(context.Cause(ex.sess.ctx), ErrExited) }
