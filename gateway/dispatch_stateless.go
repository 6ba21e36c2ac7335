package gateway

import (
	"context"
	"net/http"
	"strings"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/headers"
	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// request is one request of the stateless protocol, on any transport.
type request struct {
	end *endpoint
	id  mcp.ID
	mcp.Request
	p     mcp.Params // of the request's Params
	agent surface.Agent
	level string // the least log level the agent wants to hear, empty for none
	out   stream.Sender
}

// isModern tells the protocol of a message over HTTP: the modern one says its version in
// every request. A client that says it in one place only made a mistake of that protocol.
func isStateless(h http.Header, m *mcp.Message) bool {
	if mcp.Stateless(h.Get(wire.HeaderVersion)) {
		return true
	}
	return saysVersion(m)
}

func saysVersion(m *mcp.Message) bool {
	_, ok := jsonx.Path(m.Params, "_meta", mcp.MetaVersion)
	return ok
}

// postModern serves one message of the stateless protocol. An agent that hangs up cancels.
func (g *Gateway) postStateless(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint, m *mcp.Message, body []byte) {
	switch m.Kind() {
	case mcp.KindNotification:
		w.WriteHeader(http.StatusAccepted) // none is defined that would mean anything here
		return
	case mcp.KindResponse:
		bad := mcp.Errorf(mcp.CodeInvalidRequest, "responses are not sent in this revision; answers go into a retry")
		stream.WriteJSON(w, http.NewResponseController(w), http.StatusBadRequest, appendError(nil, mcp.ID{}, bad))
		return
	}
	q := &request{end: e, id: m.ID, Request: mcp.Request{Method: m.Method, Params: m.Params}, agent: agentOf(id)}
	if bad := q.read(r.Header); bad != nil {
		stream.WriteJSON(w, http.NewResponseController(w), http.StatusBadRequest, appendError(nil, m.ID, bad))
		return
	}
	if g.retryElsewhere(w, r, q, body) {
		return
	}
	if m.Method == mcp.MethodToolsCall {
		params := g.headerParams(r.Context(), e, q.agent, q.p.Name)
		if bad := headers.CheckParams(r.Header, q.p.Arguments, params); bad != nil {
			stream.WriteJSON(w, http.NewResponseController(w), http.StatusBadRequest, appendError(nil, m.ID, bad))
			return
		}
	}
	p := g.newReply(w, r, id.Principal, nil)
	q.out = p
	a := g.serveStateless(r.Context(), q)
	if a.none {
		if !p.Refuse(lifetime.Ended(r.Context())) {
			p.Leave()
		}
		return
	}
	defer g.held.Give(q.agent.Principal, g.holdAnswer(q.agent.Principal, &a))
	buf := stream.GetBuffer()
	*buf = a.append((*buf)[:0], q.id)
	p.Finish(a.status(), *buf)
	stream.Release(buf)
}

// read looks into the params and checks everything that the revision demands of
// every request. h is nil where there are no headers.
func (q *request) read(h http.Header) *mcp.Error {
	p, bad := q.ReadParams()
	if bad != nil {
		return bad
	}
	q.p = p
	if p.Meta == nil {
		return mcp.Errorf(mcp.CodeInvalidParams, "_meta is missing; it must carry %s and %s", mcp.MetaVersion, mcp.MetaClientCaps)
	}
	q.readMeta()
	version := q.agent.Version
	if version == "" {
		return mcp.Errorf(mcp.CodeInvalidParams, "_meta lacks %s", mcp.MetaVersion)
	}
	if h != nil {
		if bad := checkVersion(h, version); bad != nil {
			return bad
		}
	}
	if !mcp.Known(version) || !mcp.Stateless(version) {
		return unsupported(version)
	}
	if len(q.agent.Capabilities) > limit.ClientDetailBytes || len(q.agent.ClientInfo) > limit.ClientDetailBytes {
		return mcp.Errorf(mcp.CodeInvalidParams, "%s or %s is larger than %d bytes", mcp.MetaClientCaps, mcp.MetaClientInfo, limit.ClientDetailBytes)
	}
	if jsonx.TypeOf(q.agent.Capabilities) != "object" {
		return mcp.Errorf(mcp.CodeInvalidParams, "_meta lacks %s", mcp.MetaClientCaps)
	}
	if h != nil {
		return headers.CheckMethodAndName(h, q.Method, &q.p)
	}
	return nil
}

// readMeta takes over what the agent says about itself. No member is there twice,
// see [mcp.ReadParams].
func (q *request) readMeta() {
	for m := jsonx.Object(q.p.Meta); m.Next(); {
		switch string(m.Key) {
		case mcp.MetaVersion:
			q.agent.Version, _ = jsonx.StrictText(m.Value)
		case mcp.MetaClientCaps:
			q.agent.Capabilities = m.Value
		case mcp.MetaClientInfo:
			q.agent.ClientInfo = m.Value
		case mcp.MetaLogLevel:
			q.level, _ = jsonx.Text(m.Value)
		}
	}
}

func checkVersion(h http.Header, version string) *mcp.Error {
	got, ok, bad := headers.Single(h, wire.HeaderVersion)
	switch {
	case bad != nil:
		return bad
	case !ok:
		return headers.Mismatch("%s is missing", wire.HeaderVersion)
	case got != version:
		return headers.Mismatch("%s is %.100q, the body says %.100q", wire.HeaderVersion, got, version)
	}
	return nil
}

// unsupported says which versions there are.
func unsupported(version string) *mcp.Error {
	e := mcp.Errorf(mcp.CodeUnsupportedVersion, "protocol version %.100q is not supported", version)
	e.Data = append(append([]byte(`{"supported":`), versions()...), `,"requested":`...)
	e.Data = append(jsonx.AppendText(e.Data, version), '}')
	return e
}

func versions() string { return `["` + strings.Join(mcp.Versions(), `","`) + `"]` }

// serveModern answers a request. ctx is the agent's: it ends when the agent leaves.
func (g *Gateway) serveStateless(ctx context.Context, q *request) response {
	if g.opt.Tracer == nil {
		return g.dispatch(ctx, q)
	}
	return g.traced(ctx, q.Method, &q.p, q.agent.Version, func(ctx context.Context) response { return g.dispatch(ctx, q) })
}

func (g *Gateway) dispatch(ctx context.Context, q *request) response {
	switch q.Method {
	case mcp.MethodInitialize, mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return failure(mcp.CodeMethodNotFound, "%s is not part of revision %s", q.Method, q.agent.Version)
	case mcp.MethodElicit, mcp.MethodSample, mcp.MethodRoots:
		return failure(mcp.CodeMethodNotFound, "%s is not a method of a server", q.Method)
	case mcp.MethodDiscover:
		return g.discover(ctx, q)
	case mcp.MethodListen:
		return g.listen(ctx, q)
	}
	return g.run(ctx, q)
}

// discover says what the endpoint is.
func (g *Gateway) discover(ctx context.Context, q *request) response {
	info, err := q.end.view.Info(ctx, q.agent)
	if err != nil {
		return g.explain(ctx, q.end, q.agent, q.Method, err)
	}
	out := append([]byte(`{"resultType":"complete","supportedVersions":`), versions()...)
	out = append(append(out, `,"capabilities":`...), info.Capabilities...)
	if info.Instructions != "" {
		out = jsonx.AppendText(append(out, `,"instructions":`...), info.Instructions)
	}
	out = appendFreshness(out, info.TTL.Milliseconds(), info.Public)
	out = append(append(append(out, `,"_meta":{"`+mcp.MetaServerInfo+`":`...), info.Server...), "}}"...)
	return response{result: out}
}
