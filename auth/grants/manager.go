package grants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/vault"
)

// Manager keeps accounts logged in. All methods may be called from any goroutine.
// Several managers, in several processes, may share one store.
type Manager struct {
	// Grants are the stored logins.
	Grants *Store
	// Steps are requests of servers for more permission than they were given.
	Steps *StepUps

	env       *Env
	failures  *failureLog // failed refreshes
	sends     *sendLog    // refresh tokens that are being sent
	refresher *refresher  // new tokens for a stored login
	refusals  *refusals   // requests that a server refused
}

// Hooks are what a [Manager] needs of the code that logs in.
type Hooks struct {
	// Obtain asks for a token as the configuration says, without a user and without a
	// refresh token. It sends one request to the token endpoint and does not repeat it.
	Obtain func(context.Context, Account, config.Server, *oauth.Challenge) (*Grant, *oauth.TokenResponse, error)
	// ForgetClient drops the client registration of an account's grant: its
	// authorization server no longer knows it.
	ForgetClient func(context.Context, Account)
}

// New returns a manager of the grants in the store of v.
func New(v *Env, hooks Hooks) *Manager {
	m := &Manager{env: v, Grants: &Store{env: v}, Steps: &StepUps{env: v}}
	m.failures = &failureLog{Env: v, forgetClient: hooks.ForgetClient}
	m.sends = &sendLog{Env: v, self: thisSender, stateOf: probeSender}
	m.refresher = &refresher{Env: v, grants: m.Grants, failures: m.failures, sends: m.sends, obtain: hooks.Obtain}
	m.refusals = &refusals{Env: v, grants: m.Grants, steps: m.Steps, refresher: m.refresher}
	return m
}

// Obtain gets new tokens whatever there is, for an account that logs in without a user.
// c is what the server said when it refused a request, nil if it did not.
func (m *Manager) Obtain(ctx context.Context, a Account, srv config.Server, c *oauth.Challenge) (*Grant, error) {
	return m.refresher.renew(ctx, a, srv, renewal{always: true, challenge: c})
}

// StoreLogin makes the grant of a new login durable before anybody uses it.
func (m *Manager) StoreLogin(ctx context.Context, a Account, g *Grant) error {
	if err := m.env.persist(ctx, func(ctx context.Context) error { return m.Grants.storeLogin(ctx, a, g) }); err != nil {
		return err
	}
	m.Steps.close(ctx, a)
	m.env.verdicts.clear(a)
	m.failures.clear(ctx, a)
	m.env.tell(a, event.GrantStored, g.Expires, "")
	return nil
}

// LockRefresh runs f while no process that shares the store refreshes the account's
// grant.
func (m *Manager) LockRefresh(ctx context.Context, a Account, f func(context.Context) error) error {
	return holdRefresh(ctx, m.env.Store, a, func(ctx context.Context, _ vault.Lease) error { return f(ctx) })
}

// Remove deletes the account's grant and what is remembered of it. It needs
// [Manager.LockRefresh], so that no refresh brings the login back. g is what
// was stored, nil if there was nothing that could be read.
func (m *Manager) Remove(ctx context.Context, a Account, g *Grant) error {
	_, err := m.env.Store.Take(ctx, a.Key(vault.KindGrant))
	if err != nil && !errors.Is(err, vault.ErrNotFound) && !errors.Is(err, vault.ErrCorrupt) {
		return fmt.Errorf("delete the login of %s: %w", a, err)
	}
	m.forget(ctx, a)
	if g != nil {
		m.env.tell(a, event.GrantRemoved, g.Expires, "")
	}
	return nil
}

// forget drops what is remembered of an account beside its grant.
func (m *Manager) forget(ctx context.Context, a Account) {
	m.Grants.cache.put(a, nil)
	m.env.verdicts.clear(a)
	if u, _ := m.Grants.unsaved.get(a); u != nil {
		m.Grants.unsaved.remove(a, u)
	}
	for _, key := range []vault.Key{stepKey(a), attemptsKey(a), sendingKey(a)} {
		_, _ = m.env.Store.Take(ctx, key) // harmless if it stays
	}
}

// Health is what speaks against an account's grant.
type Health struct {
	NeedsLogin string // why a user has to log in; "" if nothing says so
	Trouble    string // why the last refresh failed; the grant is kept
}

// Health asks the store about the account. g is its grant, nil if it has none.
func (m *Manager) Health(ctx context.Context, a Account, g *Grant) Health {
	step, stepErr := m.Steps.Load(ctx, a)
	wantsMore := stepErr == nil && step.Open
	var h Health
	if g == nil {
		if wantsMore {
			h.NeedsLogin = "the server wants more permission"
		}
		return h
	}
	t, _ := m.failures.load(ctx, a) // what cannot be read cannot be shown
	h.Trouble = t.Reason
	verdict := m.env.verdicts.standing(a, g.Version)
	switch {
	case g.Ended != nil:
		h.NeedsLogin = g.Ended.Reason
	case verdict != "":
		h.NeedsLogin = verdict
	case t.Login:
		h.NeedsLogin = t.Reason
	case g.expired(time.Now()) && !g.Renewable():
		h.NeedsLogin = "the token has expired and there is no refresh token"
	case wantsMore:
		h.NeedsLogin = "the server wants more permission"
	}
	return h
}
