package gateway

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/internal/http1"
	"github.com/usher-mcp/usher/gateway/internal/lifetime"
	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// endpoint is a URL that speaks MCP and the view behind it.
type endpoint struct {
	key  string // the path
	view surface.View
}

// Handler serves all endpoints:
//
//	/mcp                 the view that was chosen for this gateway
//	/direct/mcp          all tools under their own names
//	/meta/mcp            the one tool that stands for all
//	/servers/NAME/mcp    one server, untouched
//	/profiles/NAME/mcp   a profile
//	/healthz, /readyz    200 while it lives, while it takes requests
//
// and the protected resource metadata where authentication is by OAuth. Every
// request passes the guard first; no answer has CORS headers.
func (g *Gateway) Handler() http.Handler { return g.Guard(http.HandlerFunc(g.route)) }

// Guard puts the checks of Host and Origin before other routes that are served on
// the same port, so that none of them is open to web pages.
func (g *Gateway) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, why := g.guard.Refuses(r); status != 0 {
			g.count.refused.Add(1)
			http.Error(w, why, status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Ours reports whether a request is addressed to this gateway by a name or address
// of its own. It is the part of the guard for pages that a person's browser is led to
// from elsewhere; a handler that uses it alone checks Origin itself.
func (g *Gateway) Ours(r *http.Request) bool { return g.guard.IsOurs(r) }

// Operators puts authentication before routes on the same port that tell about all
// servers and principals: they are for the local user with a token without a scope.
func (g *Gateway) Operators(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := g.identify(w, r)
		switch {
		case !ok:
		case id.Principal != authn.LocalPrincipal || id.Scoped():
			g.count.refused.Add(1)
			http.Error(w, "this needs a token of the operator, without a scope", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Health serves /healthz and /readyz alone, for a port of their own: to every client,
// under any host name.
func (g *Gateway) Health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) { g.health(w, r, true) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) { g.health(w, r, g.Ready()) })
	return mux
}

func (g *Gateway) route(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case path == "/healthz":
		g.health(w, r, true)
	case path == "/readyz":
		g.health(w, r, g.Ready())
	case path == authn.MetadataPath || strings.HasPrefix(path, authn.MetadataPath+"/"):
		g.metadata(w, r)
	case isEndpoint(path):
		g.enter(w, r, path)
	default:
		http.NotFound(w, r)
	}
}

func (g *Gateway) health(w http.ResponseWriter, r *http.Request, well bool) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if !well {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

func (g *Gateway) metadata(w http.ResponseWriter, r *http.Request) {
	auth, ok := g.opt.Auth.(authn.Describer)
	if !ok {
		http.NotFound(w, r)
		return
	}
	doc, ok := auth.Metadata(strings.TrimPrefix(r.URL.Path, authn.MetadataPath), isEndpoint)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(doc)
}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
}

// isEndpoint reports whether a path is one of an endpoint, be there a view or not.
func isEndpoint(path string) bool {
	rest, ok := strings.CutSuffix(path, "/mcp")
	switch rest {
	case "", "/direct", "/meta":
		return ok
	}
	name, server := strings.CutPrefix(rest, "/servers/")
	if !server {
		name, server = strings.CutPrefix(rest, "/profiles/")
	}
	return ok && server && name != "" && !strings.Contains(name, "/")
}

// find returns the endpoint at a path.
func (g *Gateway) find(ctx context.Context, id authn.Identity, path string) (*endpoint, error) {
	e := &endpoint{key: path}
	var err error
	switch rest := strings.TrimSuffix(path, "/mcp"); rest {
	case "":
		e.view, _ = g.views.Auto()
	case "/direct":
		e.view = g.views.Direct()
	case "/meta":
		e.view = g.views.Meta()
	default:
		if name, ok := strings.CutPrefix(rest, "/servers/"); ok {
			e.view, err = g.views.Server(ctx, agentOf(id), name)
		} else {
			e.view, err = g.views.Profile(strings.TrimPrefix(rest, "/profiles/"))
		}
	}
	return e, err
}

// enter finds out who asks, and for what.
func (g *Gateway) enter(w http.ResponseWriter, r *http.Request, path string) {
	switch r.Method {
	case http.MethodPost, http.MethodGet, http.MethodDelete:
	default:
		notAllowed(w, "GET, POST, DELETE")
		return
	}
	id, ok := g.identify(w, r)
	if !ok {
		return
	}
	r, b := g.bind(r, id)
	defer b.Release()
	if err := lifetime.Ended(r.Context()); err != nil {
		lifetime.Refuse(w, err)
		return
	}
	release, ok := g.holdBody(id.Principal, r.ContentLength)
	if !ok {
		g.tooMany(w, "too many large requests at once; try again in a second")
		return
	}
	defer release()
	if g.elsewhere(w, r) {
		return
	}
	e, ok := g.endpoint(r.Context(), w, id, path)
	if !ok {
		return
	}
	switch {
	case r.Method == http.MethodPost:
		g.post(w, r, id, e)
	case mcp.Stateless(r.Header.Get(wire.HeaderVersion)):
		notAllowed(w, "POST") // the stateless protocol has no other method
	case r.Method == http.MethodGet:
		g.get(w, r, id, e)
	default:
		g.delete(w, r, id, e)
	}
}

// endpoint finds the endpoint at a path for an identity, or answers the request. To
// one with a scope everything outside of it is not there, and nothing is suggested.
func (g *Gateway) endpoint(ctx context.Context, w http.ResponseWriter, id authn.Identity, path string) (*endpoint, bool) {
	if !covers(id, path) {
		http.Error(w, surface.ErrUnknownView.Error(), http.StatusNotFound)
		return nil, false
	}
	e, err := g.find(ctx, id, path)
	switch {
	case err == nil:
		return e, true
	case !errors.Is(err, surface.ErrUnknownView):
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case id.Scoped():
		http.Error(w, surface.ErrUnknownView.Error(), http.StatusNotFound)
	default:
		http.Error(w, err.Error(), http.StatusNotFound)
	}
	return nil, false
}

// post reads a message and finds out of which protocol it is.
func (g *Gateway) post(w http.ResponseWriter, r *http.Request, id authn.Identity, e *endpoint) {
	if !isJSON(r.Header.Get("Content-Type")) {
		http.Error(w, "the content type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	u := g.limits.call(id.Principal)
	if u == nil {
		g.tooMany(w, "too many requests at once; try again in a second")
		return
	}
	defer u.calls.Add(-1)
	body, status := g.readBody(w, r)
	if status != 0 {
		http.Error(w, http.StatusText(status), status)
		return
	}
	m, err := mcp.Parse(body)
	if errors.Is(err, mcp.ErrBatch) {
		g.postBatch(w, r, id, e, body)
		return
	}
	if err != nil {
		g.unreadable(w, err)
		return
	}
	if isStateless(r.Header, &m) {
		g.count.stateless.Add(1)
		g.postStateless(w, r, id, e, &m, body)
		return
	}
	g.count.legacy.Add(1)
	g.postLegacy(w, r, id, e, []mcp.Message{m}, false)
}

// isJSON reports whether a body is meant to be JSON. A browser asks us before it
// sends such a one for a page of another site, and is refused.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

// bodyTimeout is how long an agent may take to send a body.
const bodyTimeout = 30 * time.Second

// readBody reads the whole body: its end is what lets us notice that an agent left.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	if r.ContentLength > g.opt.MaxBody {
		return nil, http.StatusRequestEntityTooLarge
	}
	if b, ok := r.Body.(*http1.Body); ok {
		if body, whole := b.Whole(); whole {
			return body, 0
		}
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every connection has one
	var err error
	if n := r.ContentLength; n >= 0 {
		room := make([]byte, n+1) // one more, to find its end
		body = room[:n]
		if _, err = io.ReadFull(r.Body, body); err == nil {
			if _, err = r.Body.Read(room[n:]); errors.Is(err, io.EOF) {
				err = nil
			}
		}
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, g.opt.MaxBody))
	}
	_ = rc.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusBadRequest
	}
	return body, 0
}

// unreadable answers what is no message.
func (g *Gateway) unreadable(w http.ResponseWriter, err error) {
	e, id := envelopeError(err)
	stream.WriteJSON(w, http.NewResponseController(w), http.StatusBadRequest, appendError(nil, id, e))
}

// envelopeError is what the sender of a broken message is told.
func envelopeError(err error) (*mcp.Error, mcp.ID) {
	var broken *mcp.EnvelopeError
	if !errors.As(err, &broken) {
		return mcp.Errorf(mcp.CodeInvalidRequest, "%v", err), mcp.ID{}
	}
	code := int64(mcp.CodeInvalidRequest)
	if broken.Err != nil {
		code = mcp.CodeParse
	}
	id := broken.ID
	if broken.Kind == mcp.KindResponse {
		id = mcp.ID{} // that one is ours
	}
	return mcp.Errorf(code, "%v", broken), id
}
