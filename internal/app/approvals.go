package app

import (
	"context"
	"fmt"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// Approvals are the definitions of project files that a person has approved.
func (h *App) Approvals() *vault.Approvals { return h.approvals.records() }

// approvals decide what a definition of a project file may do before a person has
// approved it.
type approvals struct {
	store     vault.Store
	principal string
}

func (a *approvals) records() *vault.Approvals { return vault.NewApprovals(a.store, a.principal) }

// check returns an error for a server of a project file until a person has approved
// exactly this definition.
func (a *approvals) check(ctx context.Context, srv config.Server) error {
	if !srv.NeedsApproval() {
		return nil
	}
	ok, err := a.records().Approved(ctx, srv.Digest())
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
func (a *approvals) publicOnly(ctx context.Context, srv config.Server) bool {
	if !srv.PublicOnly() {
		return false
	}
	ok, err := a.records().Approved(ctx, srv.Digest())
	return err != nil || !ok
}
