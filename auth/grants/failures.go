package grants

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
	k := a.Key(vault.KindStep)
	k.Name = "renew " + k.Name
	return k
}

// failureLog remembers refreshes that failed, for all processes that share the store.
type failureLog struct {
	*Env

	forgetClient func(context.Context, Account) // called when the server no longer knows the client
}

// load reads what is remembered. A record that is damaged counts as nothing;
// a store that cannot be read is an error, since there may be one.
func (fl *failureLog) load(ctx context.Context, a Account) (t attempts, err error) {
	rec, err := fl.Store.Get(ctx, attemptsKey(a))
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
func (fl *failureLog) mayAsk(ctx context.Context, a Account, srv config.Server) error {
	t, err := fl.load(ctx, a)
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

// record takes in that a renewal failed for a reason that does not end the grant,
// and says what that means for the caller.
func (fl *failureLog) record(ctx context.Context, a Account, srv config.Server, cause error) error {
	fl.count.failed.Add(1)
	t, _ := fl.load(ctx, a) // a failure more or less does not matter
	t.Failures++
	wait := min(firstBackoff<<min(t.Failures-1, 10), maxBackoff)
	wait += fl.spread(fmt.Sprint(a, t.Failures), wait/5)
	var te *oauth.TokenError
	if errors.As(cause, &te) && te.RetryAfter > wait {
		wait = te.RetryAfter
	}
	wait = min(wait, maxBackoff)
	t.NotBefore, t.Reason = time.Now().Add(wait), oauth.Clean(cause.Error(), 300)
	t.Login = errors.Is(cause, oauth.ErrRefused) && !oauth.RefusedWith(cause, "slow_down") || errors.Is(cause, oauth.ErrNoClient)
	if t.Login && MachineFlow(srv) != "" {
		t.Refused = assertionPrint(srv)
	}
	if oauth.RefusedWith(cause, "invalid_client", "unauthorized_client") {
		fl.forgetClient(ctx, a)
	}
	if data, err := json.Marshal(t); err == nil {
		keepData := func([]byte) ([]byte, error) { return data, nil }
		if _, err := vault.Update(ctx, fl.Store, attemptsKey(a), keepData); err != nil {
			fl.Log.Warn("a failed renewal could not be written down", "account", a.String(), "error", err)
		}
	}
	if t.Login {
		need := needsLogin(a, "%s", t.Reason)
		if MachineFlow(srv) != "" {
			need.Command = "usher doctor " + a.String()
		}
		return need
	}
	return &UnavailableError{Account: a, Reason: t.Reason, RetryAfter: wait, Err: cause}
}

// clear forgets failures after a success.
func (fl *failureLog) clear(ctx context.Context, a Account) {
	if t, err := fl.load(ctx, a); err == nil && t == (attempts{}) {
		return
	}
	if _, err := fl.Store.Take(ctx, attemptsKey(a)); err != nil && !errors.Is(err, vault.ErrNotFound) {
		fl.Log.Warn("an old failure is still remembered", "account", a.String(), "error", err)
	}
}

// unsavedGrants holds renewed grants that the store did not take. They are used, and
// saved as soon as it does.
type unsavedGrants struct {
	mu sync.Mutex // guards by
	by map[Account]*unsaved
}

type unsaved struct {
	g       *Grant
	version int64
	next    time.Time
}

func (b *unsavedGrants) put(a Account, g *Grant, version int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[Account]*unsaved{}
	}
	b.by[a] = &unsaved{g: g, version: version}
}

// get returns the account's unsaved grant and whether it is time to try to save it.
func (b *unsavedGrants) get(a Account) (u *unsaved, try bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u = b.by[a]; u == nil || time.Now().Before(u.next) {
		return u, false
	}
	u.next = time.Now().Add(time.Second)
	return u, true
}

func (b *unsavedGrants) remove(a Account, u *unsaved) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[a] == u {
		delete(b.by, a)
	}
}

// fromMemory returns a grant that only this process has, saving it if it can.
func (gs *Store) fromMemory(ctx context.Context, a Account) *Grant {
	u, try := gs.unsaved.get(a)
	if u == nil {
		return nil
	}
	if try && gs.saveNow(ctx, a, u) == nil {
		return nil // read it from the store
	}
	return u.g
}

// saved reads an account's grant as Load does, when it is certain that this
// process has none that is newer: the store's refresh token would be a spent one.
func (gs *Store) saved(ctx context.Context, a Account) (*Grant, error) {
	if u, _ := gs.unsaved.get(a); u != nil {
		if err := gs.saveNow(ctx, a, u); err != nil {
			return nil, &UnavailableError{Account: a, Reason: "its renewed login could not be stored yet", RetryAfter: time.Second, Err: err}
		}
	}
	return gs.Load(ctx, a)
}

// saveNow tries once to store a grant that only this process has. Nil means that the
// store has it, or a newer one.
func (gs *Store) saveNow(ctx context.Context, a Account, u *unsaved) error {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	data, err := u.g.Encode()
	if err == nil {
		_, err = gs.env.Store.Put(ctx, a.Key(vault.KindGrant), data, u.version)
	}
	switch {
	case err == nil:
	case errors.Is(err, vault.ErrConflict):
		gs.env.Log.Warn("a renewed login was replaced before it could be stored", "account", a.String())
	default:
		gs.env.Log.Warn("a renewed login is still only in memory", "account", a.String(), "error", err)
		return fmt.Errorf("store the login of %s: %w", a, err)
	}
	gs.unsaved.remove(a, u)
	return nil
}
