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

// Logout ends an account's login: it revokes the tokens where the server offers that
// (RFC 7009), deletes the grant, and deletes the client registration, here and at
// the server (RFC 7592), if no other login uses it. It needs no configuration, so
// that the login of a server that is gone can be ended too. Without a login it does
// nothing.
func (e *Engine) Logout(ctx context.Context, a Account) (*Logout, error) {
	a = a.normal()
	return detached(ctx, e, renewLimit, func(ctx context.Context) (*Logout, error) {
		var out *Logout
		// Under the lease, so that no renewal brings the login back.
		err := vault.Hold(ctx, e.store, "refresh/"+a.key(vault.KindGrant).String(), refreshLease, func(ctx context.Context, _ vault.Lease) error {
			var err error
			out, err = e.logout(ctx, a)
			return err
		})
		return out, err
	})
}

func (e *Engine) logout(ctx context.Context, a Account) (*Logout, error) {
	out := &Logout{}
	g, err := e.loadGrant(ctx, a)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return nil, err
	}
	if g != nil && g.RevocationEndpoint != "" && g.Ended == nil {
		w := e.web(g.Bounds)
		defer w.Close()
		out.Revoked, err = w.Revoke(ctx, g.RevocationEndpoint, g.Client, g.Access, g.Refresh)
		if err != nil {
			out.Problems = append(out.Problems, fmt.Errorf("revoke the login at %s: %w", oauth.HostOf(g.RevocationEndpoint), err))
		}
	}
	_, err = e.store.Take(ctx, a.key(vault.KindGrant))
	if err != nil && !errors.Is(err, vault.ErrNotFound) && !errors.Is(err, vault.ErrCorrupt) {
		return nil, fmt.Errorf("delete the login of %s: %w", a, err)
	}
	e.forgetAccount(ctx, a)
	if g == nil {
		return out, nil
	}
	e.tell(a, event.GrantRemoved, g.Expires, "")
	if err := e.removeClient(ctx, g, out); err != nil {
		out.Problems = append(out.Problems, err)
	}
	return out, nil
}

// forgetAccount drops what is remembered of an account beside its grant.
func (e *Engine) forgetAccount(ctx context.Context, a Account) {
	e.grants.put(a, nil)
	e.verdicts.clear(a)
	if u, _ := e.unsaved.get(a); u != nil {
		e.unsaved.remove(a, u)
	}
	for _, key := range []vault.Key{stepKey(a), attemptsKey(a), sendingKey(a)} {
		_, _ = e.store.Take(ctx, key) // harmless if it stays
	}
}

// removeClient deletes the registration a grant was made with if it was the last.
func (e *Engine) removeClient(ctx context.Context, g *grant, out *Logout) error {
	if g.Client.Source != oauth.SourceDynamic {
		return nil
	}
	used, err := e.clientsInUse(ctx)
	if err != nil {
		return err
	}
	if used[clientUse{g.Bind, g.Client.ID}] {
		return nil
	}
	r, err := e.loadRegistration(ctx, g.Bind, g.Group)
	if err != nil || r == nil || r.Client.ID != g.Client.ID {
		return err
	}
	if err := e.store.Delete(ctx, registrationKey(g.Bind, g.Group), r.version); err != nil {
		return fmt.Errorf("delete the client registration: %w", err)
	}
	out.ClientRemoved = true
	return e.deregister(ctx, r)
}

// deregister deletes a registration at its server, where that is offered.
func (e *Engine) deregister(ctx context.Context, r *registration) error {
	w := e.web(r.Bounds)
	defer w.Close()
	return w.Deregister(ctx, &r.Registration)
}

// clientUse names a client at one authorization server.
type clientUse struct{ bind, id string }

// clientsInUse lists the clients that grants and pending logins need.
func (e *Engine) clientsInUse(ctx context.Context) (map[clientUse]bool, error) {
	used := map[clientUse]bool{}
	grants, err := e.store.List(ctx, vault.KindGrant, "")
	if err != nil {
		return nil, fmt.Errorf("look which clients are in use: %w", err)
	}
	for _, rec := range grants {
		if g, err := decodeGrant(rec); err == nil {
			used[clientUse{g.Bind, g.Client.ID}] = true
		}
	}
	waiting, err := e.store.List(ctx, vault.KindPending, vault.Local)
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
