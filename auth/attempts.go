package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// Backoff of renewals that fail.
const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
)

// attempts remembers failed renewals of an account, of kind vault.KindStep, so that
// all processes together leave a server that cannot serve alone.
type attempts struct {
	Failures  int       `json:"failures"`
	NotBefore time.Time `json:"not_before"`
	Reason    string    `json:"reason"`
	// Login: a person has to help; the grant is kept all the same.
	Login bool `json:"login,omitempty"`
	// Refused is the fingerprint of an assertion that must not be sent again.
	Refused string `json:"refused,omitempty"`
}

func attemptsKey(a Account) vault.Key {
	k := a.key(vault.KindStep)
	k.Name = "renew " + k.Name
	return k
}

// loadAttempts reads what is remembered. A record that is damaged counts as nothing;
// a store that cannot be read is an error, since there may be one.
func (e *Engine) loadAttempts(ctx context.Context, a Account) (t attempts, err error) {
	rec, err := e.store.Get(ctx, attemptsKey(a))
	switch {
	case err == nil:
		_ = json.Unmarshal(rec.Data, &t) // nonsense counts as nothing
		return t, nil
	case errors.Is(err, vault.ErrNotFound), errors.Is(err, vault.ErrCorrupt):
		return t, nil
	}
	return t, fmt.Errorf("read the failures of %s: %w", a, err)
}

// mayAsk returns an error while the authorization server must be left alone.
func (e *Engine) mayAsk(ctx context.Context, a Account, srv config.Server) error {
	t, err := e.loadAttempts(ctx, a)
	if err != nil {
		return &UnavailableError{Account: a, Reason: "the store is out of reach", RetryAfter: time.Second, Err: err}
	}
	if t.Refused != "" && t.Refused == assertionPrint(srv) {
		return &NeedsLoginError{Account: a, Reason: "this assertion was refused before: " + t.Reason, Command: "usher doctor " + a.String()}
	}
	wait := time.Until(t.NotBefore)
	if wait <= 0 || wait > maxBackoff || t.Refused != "" {
		return nil // nobody waits for longer: the clock was ahead when that was written
	}
	if t.Login {
		return needsLogin(a, "%s", t.Reason)
	}
	return &UnavailableError{Account: a, Reason: t.Reason, RetryAfter: wait}
}

// failed takes in that a renewal failed for a reason that does not end the grant,
// and says what that means for the caller.
func (e *Engine) failed(ctx context.Context, a Account, srv config.Server, cause error) error {
	e.count.failed.Add(1)
	t, _ := e.loadAttempts(ctx, a) // a failure more or less does not matter
	t.Failures++
	wait := min(firstBackoff<<min(t.Failures-1, 10), maxBackoff)
	wait += e.spread(fmt.Sprint(a, t.Failures), wait/5)
	var te *TokenError
	if errors.As(cause, &te) && te.RetryAfter > wait {
		wait = te.RetryAfter
	}
	wait = min(wait, maxBackoff)
	t.NotBefore, t.Reason = time.Now().Add(wait), oauth.Clean(cause.Error(), 300)
	t.Login = errors.Is(cause, ErrRefused) && !oauth.RefusedWith(cause, "slow_down") || errors.Is(cause, ErrNoClient)
	if t.Login && machineFlow(srv) != "" {
		t.Refused = assertionPrint(srv)
	}
	if oauth.RefusedWith(cause, "invalid_client", "unauthorized_client") {
		e.forgetGrantClient(ctx, a)
	}
	if data, err := json.Marshal(t); err == nil {
		keepData := func([]byte) ([]byte, error) { return data, nil }
		if _, err := vault.Update(ctx, e.store, attemptsKey(a), keepData); err != nil {
			e.log.Warn("a failed renewal could not be written down", "account", a.String(), "error", err)
		}
	}
	if t.Login {
		need := needsLogin(a, "%s", t.Reason)
		if machineFlow(srv) != "" {
			need.Command = "usher doctor " + a.String()
		}
		return need
	}
	return &UnavailableError{Account: a, Reason: t.Reason, RetryAfter: wait, Err: cause}
}

// forgetGrantClient throws away the registration that an account's grant was made
// with: its server no longer knows it.
func (e *Engine) forgetGrantClient(ctx context.Context, a Account) {
	if g, err := e.loadGrant(ctx, a); err == nil && g != nil {
		e.forgetClient(ctx, g.Bind, g.Group, g.Client)
	}
}

// clearAttempts forgets failures after a success.
func (e *Engine) clearAttempts(ctx context.Context, a Account) {
	if t, err := e.loadAttempts(ctx, a); err == nil && t == (attempts{}) {
		return
	}
	if _, err := e.store.Take(ctx, attemptsKey(a)); err != nil && !errors.Is(err, vault.ErrNotFound) {
		e.log.Warn("an old failure is still remembered", "account", a.String(), "error", err)
	}
}

// unsavedBook holds renewed grants that the store did not take. They are used, and
// saved as soon as it does.
type unsavedBook struct {
	mu sync.Mutex // guards by
	by map[Account]*unsaved
}

type unsaved struct {
	g       *grant
	version int64
	next    time.Time
}

func (b *unsavedBook) put(a Account, g *grant, version int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[Account]*unsaved{}
	}
	b.by[a] = &unsaved{g: g, version: version}
}

// get returns the account's unsaved grant and whether it is time to try to save it.
func (b *unsavedBook) get(a Account) (u *unsaved, try bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u = b.by[a]; u == nil || time.Now().Before(u.next) {
		return u, false
	}
	u.next = time.Now().Add(time.Second)
	return u, true
}

func (b *unsavedBook) remove(a Account, u *unsaved) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[a] == u {
		delete(b.by, a)
	}
}

// fromMemory returns a grant that only this process has, saving it if it can.
func (e *Engine) fromMemory(ctx context.Context, a Account) *grant {
	u, try := e.unsaved.get(a)
	if u == nil {
		return nil
	}
	if try && e.saveNow(ctx, a, u) == nil {
		return nil // read it from the store
	}
	return u.g
}

// saved reads an account's grant as loadGrant does, when it is certain that this
// process has none that is newer: the store's refresh token would be a spent one.
func (e *Engine) saved(ctx context.Context, a Account) (*grant, error) {
	if u, _ := e.unsaved.get(a); u != nil {
		if err := e.saveNow(ctx, a, u); err != nil {
			return nil, &UnavailableError{Account: a, Reason: "its renewed login could not be stored yet", RetryAfter: time.Second, Err: err}
		}
	}
	return e.loadGrant(ctx, a)
}

// saveNow tries once to store a grant that only this process has. Nil means that the
// store has it, or a newer one.
func (e *Engine) saveNow(ctx context.Context, a Account, u *unsaved) error {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	data, err := u.g.encode()
	if err == nil {
		_, err = e.store.Put(ctx, a.key(vault.KindGrant), data, u.version)
	}
	switch {
	case err == nil:
	case errors.Is(err, vault.ErrConflict):
		e.log.Warn("a renewed login was replaced before it could be stored", "account", a.String())
	default:
		e.log.Warn("a renewed login is still only in memory", "account", a.String(), "error", err)
		return fmt.Errorf("store the login of %s: %w", a, err)
	}
	e.unsaved.remove(a, u)
	return nil
}
