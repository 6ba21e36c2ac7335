package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

// Logout is what became of a login that was ended.
type Logout struct {
	// Revoked says that the authorization server was told, where it offers that.
	Revoked bool
	// ClientRemoved says that the client registration is gone too: no other login
	// used it.
	ClientRemoved bool
	// Problems lists what did not work; the login is gone all the same.
	Problems []error
}

// logoutLimit is how long a logout may take, with requests to the authorization server.
const logoutLimit = 2 * time.Minute

// Logout ends an account's login: it revokes the tokens where the server offers that
// (RFC 7009), deletes the grant, and deletes the client registration, here and at
// the server (RFC 7592), if no other login uses it. It needs no configuration, so
// that the login of a server that is gone can be ended too. Without a login it does
// nothing.
func (e *Engine) Logout(ctx context.Context, a Account) (*Logout, error) {
	a = a.Normal()
	return grants.Detached(ctx, e.env, logoutLimit, func(ctx context.Context) (*Logout, error) {
		var out *Logout
		// Under the lease, so that no renewal brings the login back.
		err := e.grants.LockRefresh(ctx, a, func(ctx context.Context) error {
			var err error
			out, err = e.logouts.logout(ctx, a)
			return err
		})
		return out, err
	})
}

// logouts ends logins.
type logouts struct {
	*grants.Env

	grants  *grants.Manager
	clients *registrar
}

func (lo *logouts) logout(ctx context.Context, a Account) (*Logout, error) {
	out := &Logout{}
	g, err := lo.grants.Grants.Load(ctx, a)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return nil, err
	}
	if g != nil && g.RevocationEndpoint != "" && g.Ended == nil {
		w := lo.Client(g.Bounds)
		defer w.Close()
		out.Revoked, err = w.Revoke(ctx, g.RevocationEndpoint, g.Client, g.Access, g.Refresh)
		if err != nil {
			out.Problems = append(out.Problems, fmt.Errorf("revoke the login at %s: %w", oauth.HostOf(g.RevocationEndpoint), err))
		}
	}
	if err := lo.grants.Remove(ctx, a, g); err != nil {
		return nil, err
	}
	if g == nil {
		return out, nil
	}
	if err := lo.clients.removeUnused(ctx, g, out); err != nil {
		out.Problems = append(out.Problems, err)
	}
	return out, nil
}

// removeUnused deletes the registration a grant was made with if it was the last.
func (rg *registrar) removeUnused(ctx context.Context, g *grants.Grant, out *Logout) error {
	if g.Client.Source != oauth.SourceDynamic {
		return nil
	}
	used, err := rg.inUse(ctx)
	if err != nil {
		return err
	}
	if used[clientUse{g.Bind, g.Client.ID}] {
		return nil
	}
	r, err := rg.load(ctx, g.Bind, g.Group)
	if err != nil || r == nil || r.Client.ID != g.Client.ID {
		return err
	}
	if err := rg.Store.Delete(ctx, registrationKey(g.Bind, g.Group), r.version); err != nil {
		return fmt.Errorf("delete the client registration: %w", err)
	}
	out.ClientRemoved = true
	return rg.deregister(ctx, r)
}

// deregister deletes a registration at its server, where that is offered.
func (rg *registrar) deregister(ctx context.Context, r *registration) error {
	w := rg.Client(r.Bounds)
	defer w.Close()
	return w.Deregister(ctx, &r.Registration)
}

// clientUse names a client at one authorization server.
type clientUse struct{ bind, id string }

// inUse lists the clients that grants and pending logins need.
func (rg *registrar) inUse(ctx context.Context) (map[clientUse]bool, error) {
	used := map[clientUse]bool{}
	stored, err := rg.Store.List(ctx, vault.KindGrant, "")
	if err != nil {
		return nil, fmt.Errorf("look which clients are in use: %w", err)
	}
	for _, rec := range stored {
		if g, err := grants.Decode(rec); err == nil {
			used[clientUse{g.Bind, g.Client.ID}] = true
		}
	}
	waiting, err := rg.Store.List(ctx, vault.KindPending, vault.Local)
	if err != nil {
		return nil, fmt.Errorf("look which clients are in use: %w", err)
	}
	for _, rec := range waiting {
		if p, err := decodePending(rec); err == nil {
			used[clientUse{p.Bind, p.Client.ID}] = true
		}
	}
	return used, nil
}
