package usher

import (
	"context"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
)

// What logins need of the wiring.

// account reads "server" or "server@label" of the host's principal.
func (h *Host) account(text string) (auth.Account, error) { return h.app.Logins().Account(text) }

// target returns the definition behind an account with its placeholders filled in.
func (h *Host) target(ctx context.Context, a auth.Account) (config.Server, error) {
	return h.app.Logins().Target(ctx, a)
}

// targets returns the named accounts, or those of all servers that one can log in to.
func (h *Host) targets(ctx context.Context, accounts []string) ([]bulk.Target, error) {
	return h.app.Logins().Targets(ctx, accounts)
}

// reconnect makes the connections of an account use its new login.
func (h *Host) reconnect(ctx context.Context, a auth.Account) error {
	return h.app.Logins().Reconnect(ctx, a)
}

func (h *Host) logout(ctx context.Context, a auth.Account) (*auth.Logout, error) {
	return h.app.Logins().Logout(ctx, a)
}
