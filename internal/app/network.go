package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/upstream"
)

// network carries the HTTP requests of all servers.
type network struct {
	approvals *approvals
	own       *upstream.Transport // nil when the program brings its own
	ownPublic *upstream.Transport // connects to public addresses only; nil as above

	plain       http.RoundTripper // without credentials
	any, public http.RoundTripper // with credentials
}

// open makes the transports, unless the program brings its own.
func (n *network) open(given http.RoundTripper, a *approvals) {
	n.approvals, n.plain = a, given
	if given == nil {
		n.own, n.ownPublic = upstream.NewTransport(), upstream.NewPublicTransport()
		n.plain = n.own
	}
}

// authorize puts the engine's credentials on requests.
func (n *network) authorize(e *auth.Engine) {
	n.any = e.Transport(n.plain)
	n.public = n.any
	if n.ownPublic != nil {
		n.public = e.Transport(n.ownPublic)
	}
}

func (n *network) close() {
	if n.own != nil {
		n.own.CloseIdleConnections()
		n.ownPublic.CloseIdleConnections()
	}
}

// transportFor carries the HTTP requests to a server. For one that comes from a project
// file and that no person has approved, it connects to public addresses only; unless
// the program has set [Options.Transport], whose network is its own.
func (n *network) transportFor(ctx context.Context, srv config.Server) http.RoundTripper {
	if n.ownPublic == nil || !n.approvals.publicOnly(ctx, srv) {
		return n.any
	}
	return &publicTransport{n.public, srv.Name}
}

// publicTransport adds to a refusal how a person approves the server.
type publicTransport struct {
	base   http.RoundTripper
	server string
}

// RoundTrip sends the request.
func (t *publicTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if errors.Is(err, upstream.ErrNotPublic) {
		return resp, &host.Error{Op: "connect", Server: t.server, Err: fmt.Errorf("%w: %w", host.ErrHeldBack, err), Action: host.ActionApprove}
	}
	return resp, err
}
