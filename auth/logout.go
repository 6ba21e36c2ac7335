package auth

import (
	"context"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/event"
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

// logouts ends logins.
type logouts struct {
	*env

	grants  *grantStore
	clients *registrar
}

// Logout ends an account's login: it revokes the tokens where the server offers that
// (RFC 7009), deletes the grant, and deletes the client registration, here and at
// the server (RFC 7592), if no other login uses it. It needs no configuration, so
// that the login of a server that is gone can be ended too. Without a login it does
// nothing.
func (e *Engine) Logout(ctx context.Context, a Account) (*Logout, error) {
	a = a.normal()
	return detached(ctx, e.env, renewLimit, func(ctx context.Context) (*Logout, error) {
		var out *Logout
		// Under the lease, so that no renewal brings the login back.
		err := vault.Hold(ctx, e.store, "refresh/"+a.key(vault.KindGrant).String(), refreshLease, func(ctx context.Context, _ vault.Lease) error {
			var err error
			out, err = e.logouts.logout(ctx, a)
			return err
		})
		return out, err
	})
}

func (lo *logouts) logout(ctx context.Context, a Account) (*Logout, error) {
	out := &Logout{}
	g, err := lo.grants.load(ctx, a)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return nil, err
	}
	if g != nil && g.RevocationEndpoint != "" && g.Ended == nil {
		w := lo.client(g.Bounds)
		defer w.Close()
		out.Revoked, err = w.Revoke(ctx, g.RevocationEndpoint, g.Client, g.Access, g.Refresh)
		if err != nil {
			out.Problems = append(out.Problems, fmt.Errorf("revoke the login at %s: %w", oauth.HostOf(g.RevocationEndpoint), err))
		}
	}
	_, err = lo.store.Take(ctx, a.key(vault.KindGrant))
	if err != nil && !errors.Is(err, vault.ErrNotFound) && !errors.Is(err, vault.ErrCorrupt) {
		return nil, fmt.Errorf("delete the login of %s: %w", a, err)
	}
	lo.forget(ctx, a)
	if g == nil {
		return out, nil
	}
	lo.tell(a, event.GrantRemoved, g.Expires, "")
	if err := lo.clients.removeUnused(ctx, g, out); err != nil {
		out.Problems = append(out.Problems, err)
	}
	return out, nil
}

// forget drops what is remembered of an account beside its grant.
func (lo *logouts) forget(ctx context.Context, a Account) {
	lo.grants.cache.put(a, nil)
	lo.verdicts.clear(a)
	if u, _ := lo.grants.unsaved.get(a); u != nil {
		lo.grants.unsaved.remove(a, u)
	}
	for _, key := range []vault.Key{stepKey(a), attemptsKey(a), sendingKey(a)} {
		_, _ = lo.store.Take(ctx, key) // harmless if it stays
	}
}

// removeUnused deletes the registration a grant was made with if it was the last.
func (rg *registrar) removeUnused(ctx context.Context, g *grant, out *Logout) error {
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
	if err := rg.store.Delete(ctx, registrationKey(g.Bind, g.Group), r.version); err != nil {
		return fmt.Errorf("delete the client registration: %w", err)
	}
	out.ClientRemoved = true
	return rg.deregister(ctx, r)
}

// deregister deletes a registration at its server, where that is offered.
func (rg *registrar) deregister(ctx context.Context, r *registration) error {
	w := rg.client(r.Bounds)
	defer w.Close()
	return w.Deregister(ctx, &r.Registration)
}

// clientUse names a client at one authorization server.
type clientUse struct{ bind, id string }

// inUse lists the clients that grants and pending logins need.
func (rg *registrar) inUse(ctx context.Context) (map[clientUse]bool, error) {
	used := map[clientUse]bool{}
	grants, err := rg.store.List(ctx, vault.KindGrant, "")
	if err != nil {
		return nil, fmt.Errorf("look which clients are in use: %w", err)
	}
	for _, rec := range grants {
		if g, err := decodeGrant(rec); err == nil {
			used[clientUse{g.Bind, g.Client.ID}] = true
		}
	}
	waiting, err := rg.store.List(ctx, vault.KindPending, vault.Local)
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
