package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/upstream"
	"github.com/usher-mcp/usher/vault"
)

// Approvals are the definitions of project files that a person has agreed to.
func (h *App) Approvals() *vault.Approvals { return vault.NewApprovals(h.store, h.principal) }

// approved holds back servers of project files until a person has agreed to the
// very definition.
func (h *App) approved(ctx context.Context, srv config.Server) error {
	if !srv.NeedsApproval() {
		return nil
	}
	ok, err := h.Approvals().Approved(ctx, srv.Digest())
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s comes from %s and has not been approved", srv.Name, srv.Origin.File)
	}
	return nil
}

// publicOnly reports whether what is done for a server must not reach private
// addresses: its definition comes from a project file and no person has approved it.
// A store that cannot be read has no approvals.
func (h *App) publicOnly(ctx context.Context, srv config.Server) bool {
	if !srv.PublicOnly() {
		return false
	}
	ok, err := h.Approvals().Approved(ctx, srv.Digest())
	return err != nil || !ok
}

// Transport carries the HTTP requests to a server. For one that comes from a project
// file and that no person has approved, it connects to public addresses only; unless
// the program has set [Options.Transport], whose network is its own.
func (h *App) Transport(ctx context.Context, srv config.Server) http.RoundTripper {
	if h.public == nil || !h.publicOnly(ctx, srv) {
		return h.carriers.any
	}
	return &publicCarrier{h.carriers.public, srv.Name}
}

// publicCarrier tells how a person can let a server be reached that is not public.
type publicCarrier struct {
	base   http.RoundTripper
	server string
}

// RoundTrip sends the request.
func (c *publicCarrier) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.base.RoundTrip(req)
	if errors.Is(err, upstream.ErrNotPublic) {
		return resp, &host.Error{Op: "connect", Server: c.server, Err: fmt.Errorf("%w: %w", host.ErrHeldBack, err), Action: host.ActionApprove}
	}
	return resp, err
}
