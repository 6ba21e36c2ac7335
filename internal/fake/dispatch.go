package fake

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// exchange is one request and what is needed to answer it.
type exchange struct {
	sess    *session
	out     sink
	msg     mcp.Message
	p       mcp.Params
	header  http.Header // nil on stdio
	modern  bool
	version string
	caps    []byte // of the client
	refused *mcp.Error
}

// admit reads a request's params and decides its era. What is wrong with it is in
// refused and becomes the answer.
func (s *Server) admit(sess *session, out sink, msg mcp.Message, h http.Header) *exchange {
	ex := &exchange{sess: sess, out: out, msg: msg, header: h}
	p, bad := mcp.ReadParams(msg.Params)
	ex.p = p
	sess.expect(msg.ID)
	name, _ := p.NameFor(msg.Method)
	s.note(sess, Entry{Event: EventRequest, Method: msg.Method, Name: name, ID: msg.ID.JSON(), Params: msg.Params, Headers: s.headers(h)})
	if bad != nil {
		ex.refused = bad
		return ex
	}
	claimed, hasVersion := jsonx.Get(p.Meta, mcp.MetaVersion)
	if hasVersion && msg.Method != mcp.MethodInitialize && sess.transport != "sse" && s.speaksModern() {
		ex.modern = true
		ex.version, _ = jsonx.Text(claimed)
		ex.caps, _ = jsonx.Get(p.Meta, mcp.MetaClientCaps)
		ex.refused = s.checkModern(ex)
		return ex
	}
	sess.mu.Lock()
	ready := sess.ready
	sess.mu.Unlock()
	ex.refused = s.checkLegacy(msg.Method, ready)
	if msg.Method == mcp.MethodInitialize && ex.refused == nil {
		// Here and not while serving, so that a client need not wait before it
		// sends what comes next.
		s.negotiate(ex)
	}
	sess.mu.Lock()
	ex.version, ex.caps = sess.version, sess.caps
	sess.mu.Unlock()
	return ex
}

func (s *Server) checkModern(ex *exchange) *mcp.Error {
	if !mcp.Stateless(ex.version) || !slices.Contains(s.opts.Versions, ex.version) {
		return s.unsupported(ex.version)
	}
	if jsonx.TypeOf(ex.caps) != "object" {
		return mcp.Errorf(mcp.CodeInvalidParams, "_meta lacks %s", mcp.MetaClientCaps)
	}
	return nil
}

func (s *Server) checkLegacy(method string, ready bool) *mcp.Error {
	legacy := len(s.legacyVersions()) > 0
	switch {
	case method == mcp.MethodInitialize && !legacy:
		return s.unsupported("")
	case method == mcp.MethodInitialize, ready, method == mcp.MethodPing && legacy:
		return nil
	case s.speaksModern() && (!legacy || method == mcp.MethodDiscover):
		return mcp.Errorf(mcp.CodeInvalidParams, "_meta lacks %s", mcp.MetaVersion)
	case method == mcp.MethodDiscover:
		return mcp.Errorf(mcp.CodeMethodNotFound, "method %s not found", method)
	}
	return mcp.Errorf(mcp.CodeInvalidRequest, "%s came before initialize", method)
}

func (s *Server) unsupported(requested string) *mcp.Error {
	e := mcp.Errorf(mcp.CodeUnsupportedVersion, "unsupported protocol version")
	e.Data = jsonx.Apply(nil,
		jsonx.Edit{Key: "supported", Value: quoteAll(s.opts.Versions)},
		jsonx.Edit{Key: "requested", Value: jsonx.Quote(requested)})
	return e
}

func quoteAll(list []string) []byte {
	out := []byte{'['}
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonx.AppendText(out, v)
	}
	return append(out, ']')
}

// serve answers an admitted request.
func (s *Server) serve(ctx context.Context, ex *exchange) {
	defer ex.out.end()
	ctx, done := ex.sess.begin(ctx, ex.msg.ID)
	defer done()
	if !s.before(ctx, ex) {
		s.noteCancelled(ctx, ex)
		return
	}
	result, rpcErr := s.result(ctx, ex)
	if s.noteCancelled(ctx, ex) || ctx.Err() != nil {
		return
	}
	s.answer(ctx, ex, result, rpcErr)
}

// noteCancelled enters that the client gave the request up, if it did.
func (s *Server) noteCancelled(ctx context.Context, ex *exchange) bool {
	if !errors.Is(context.Cause(ctx), errCancelled) {
		return false
	}
	name, _ := ex.p.NameFor(ex.msg.Method)
	s.note(ex.sess, Entry{Event: EventCancelled, Method: ex.msg.Method, Name: name, ID: ex.msg.ID.JSON()})
	return true
}

func (s *Server) result(ctx context.Context, ex *exchange) ([]byte, *mcp.Error) {
	if ex.refused != nil {
		return nil, ex.refused
	}
	result, err := s.dispatch(ctx, ex)
	if err == nil {
		return result, nil
	}
	var rpc *mcp.Error
	if errors.As(err, &rpc) {
		return nil, rpc
	}
	return nil, mcp.Errorf(mcp.CodeInternal, "%v", err)
}

// receive takes a notification or a response.
func (s *Server) receive(sess *session, msg mcp.Message, h http.Header) {
	if msg.Kind() == mcp.KindResponse {
		body := msg.Result
		if body == nil {
			body = msg.Error
		}
		s.note(sess, Entry{Event: EventResponse, ID: msg.ID.JSON(), Params: body})
		sess.answered(msg)
		return
	}
	s.note(sess, Entry{Event: EventNotification, Method: msg.Method, Params: msg.Params, Headers: s.headers(h)})
	if msg.Method != mcp.MethodNotifyCancel {
		return
	}
	raw, _ := jsonx.Get(msg.Params, "requestId")
	id, ok := mcp.RawID(raw)
	if _, ignored := s.sw.fire("cancelled-ignored", msg.Method); ok && !ignored {
		sess.cancelCall(id)
	}
}

// parse reads one message and enters what is none.
func (s *Server) parse(sess *session, raw []byte) (mcp.Message, *mcp.Error) {
	msg, err := mcp.Parse(raw)
	if err == nil {
		return msg, nil
	}
	s.note(sess, Entry{Event: EventInvalid, Detail: err.Error()})
	if errors.Is(err, mcp.ErrBatch) || jsonx.Valid(bytes.TrimSpace(raw)) == nil {
		return msg, mcp.Errorf(mcp.CodeInvalidRequest, "%v", err)
	}
	return msg, mcp.Errorf(mcp.CodeParse, "%v", err)
}

// headers is interesting, unless nobody will read it.
func (s *Server) headers(h http.Header) map[string]string {
	if s.ledger.discard {
		return nil
	}
	return interesting(h)
}

// interesting picks the headers a test may ask about.
func interesting(h http.Header) map[string]string {
	var out map[string]string
	for k, v := range h {
		mcp := strings.HasPrefix(k, "Mcp-")
		if mcp || slices.Contains([]string{"Accept", "Authorization", "Content-Type", "Last-Event-Id", "Origin", "Traceparent", "User-Agent", "Cookie"}, k) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = strings.Join(v, ", ")
		}
	}
	return out
}
