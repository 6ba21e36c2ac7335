package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// pendingLife is how long a person has to consent.
const pendingLife = 10 * time.Minute

// Pending is a login that waits for a person. It holds no secret but the state, in
// AuthorizeURL and State, which the person's browser sees too.
type Pending struct {
	Account      Account
	ServerURL    string
	Issuer       string
	Flow         Flow
	AuthorizeURL string // the page to open; "" for a device login
	State        string
	RedirectURI  string
	Scopes       []string
	Created      time.Time
	Expires      time.Time
	// Had is the version of the grant there was when it began: another one says that it
	// was finished, whatever the clocks of those who write say. 0: there was none.
	Had int64
	// Where says which process began it.
	Where  string
	Device *Device // set for a device login
}

// pending is the record of a login that waits, of kind vault.KindPending. It is
// found by the hash of its state, so that a reader of the names of records
// cannot answer for a user; any process that shares the store can.
type pending struct {
	Principal    string             `json:"principal"`
	Server       string             `json:"server"`
	Label        string             `json:"label,omitempty"`
	ServerURL    string             `json:"server_url"`
	Flow         Flow               `json:"flow"`
	State        oauth.StoredSecret `json:"state"`
	Verifier     oauth.StoredSecret `json:"verifier,omitzero"`
	AuthorizeURL oauth.StoredSecret `json:"authorize_url,omitzero"`
	RedirectURI  string             `json:"redirect_uri,omitempty"`
	Requested    []string           `json:"scopes,omitempty"`
	Resource     string             `json:"resource,omitempty"`
	Audience     string             `json:"audience,omitempty"`
	DPoP         oauth.StoredSecret `json:"dpop_key,omitzero"`

	// Issuer is who must answer, and IssParameter whether it said that it would
	// name itself.
	Issuer             string            `json:"issuer,omitempty"`
	IssParameter       bool              `json:"iss_parameter,omitempty"`
	TokenEndpoint      string            `json:"token_endpoint"`
	RevocationEndpoint string            `json:"revocation_endpoint,omitempty"`
	Client             oauth.Credentials `json:"client"`
	// Bind and Group are what the client is registered under, if it is.
	Bind  string `json:"bind"`
	Group string `json:"group,omitempty"`

	Bounds oauth.Bounds `json:"bounds,omitzero"`

	Device *oauth.DeviceAuthorization `json:"device,omitempty"`

	Had int64 `json:"had,omitempty"` // see Pending

	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	Where   string    `json:"where,omitempty"`

	version int64
}

// LogValue keeps the secrets out of logs.
func (p pending) LogValue() slog.Value { return slog.StringValue(p.account().String()) }

func (p *pending) account() Account {
	return Account{Principal: p.Principal, Server: p.Server, Label: p.Label}
}

// view is what callers get to see.
func (p *pending) view() *Pending {
	v := &Pending{
		Account: p.account(), ServerURL: p.ServerURL, Issuer: p.Issuer, Flow: p.Flow, AuthorizeURL: p.AuthorizeURL.Reveal(),
		State: p.State.Reveal(), RedirectURI: p.RedirectURI, Scopes: p.Requested, Created: p.Created, Expires: p.Expires, Had: p.Had, Where: p.Where,
	}
	if p.Device != nil {
		d := p.Device.Device
		v.Device = &d
	}
	return v
}

// newState makes the unguessable name of a login.
func newState() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// stateName is the part of keys that stands for a state.
func stateName(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:])
}

// pendingKey is the key of a login. The principal is in the record: who receives an
// answer knows only the state.
func pendingKey(state string) vault.Key { return vault.LocalKey(vault.KindPending, stateName(state)) }

func (pl *pendingLogins) put(ctx context.Context, p *pending) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if len(data) > limit.PendingBytes {
		return fmt.Errorf("log in to %s: %w: what its authorization server publishes does not fit into %d bytes", p.account(), ErrTooMany, limit.PendingBytes)
	}
	rec, err := pl.Store.Put(ctx, pendingKey(p.State.Reveal()), data, p.version)
	if err != nil {
		return fmt.Errorf("write down the login to %s: %w", p.account(), err)
	}
	p.version = rec.Version
	return nil
}

// pendingLogins keeps the logins that wait for a user.
type pendingLogins struct {
	*grants.Env

	grants  *grants.Store
	waiting outcomeLog
}

// find returns the login with this state if it still waits, else
// [ErrUnknownState], which is [ErrExpired] too if it has waited for too long.
func (pl *pendingLogins) find(ctx context.Context, state string) (*pending, error) {
	return pl.findAllowed(ctx, state, nil)
}

// findAllowed is findPending for logins of accounts that are allowed; nil allows all.
// Others are unknown, also those that have expired.
func (pl *pendingLogins) findAllowed(ctx context.Context, state string, allowed func(Account) bool) (*pending, error) {
	if state == "" || len(state) > limit.LoginState {
		return nil, ErrUnknownState
	}
	rec, err := pl.Store.Get(ctx, pendingKey(state))
	if errors.Is(err, vault.ErrNotFound) {
		return nil, ErrUnknownState
	}
	if err != nil {
		return nil, fmt.Errorf("look for the login: %w", err)
	}
	p, err := decodePending(rec)
	if err != nil {
		return nil, err
	}
	if allowed != nil && !allowed(p.account()) {
		return nil, ErrUnknownState
	}
	if !time.Now().Before(p.Expires) {
		pl.drop(ctx, p)
		return nil, fmt.Errorf("%w: %w", ErrUnknownState, p.tooLate())
	}
	return p, nil
}

// tooLate says that the time of a login is up.
func (p *pending) tooLate() error {
	return fmt.Errorf("login to %s: %w (%v); log in again", p.account(), ErrExpired, p.Expires.Sub(p.Created))
}

func decodePending(rec vault.Record) (*pending, error) {
	p := &pending{version: rec.Version}
	if json.Unmarshal(rec.Data, p) != nil {
		return nil, &vault.CorruptError{Key: rec.Key, Err: errors.New("it is not a pending login as this version writes it")}
	}
	return p, nil
}

// drop forgets a login. If that fails it runs out by itself.
func (pl *pendingLogins) drop(ctx context.Context, p *pending) {
	if err := pl.Store.Delete(ctx, pendingKey(p.State.Reveal()), p.version); err != nil && !errors.Is(err, vault.ErrNotFound) {
		pl.Log.Warn("a finished login could not be removed and runs out by itself", "account", p.account().String(), "error", err)
	}
}

// dropCovered forgets other logins through a page that would give an account no more
// than the one that is finished: a person who began twice is done, wherever it is that
// somebody waits.
func (pl *pendingLogins) dropCovered(ctx context.Context, by *pending) {
	recs, _ := pl.Store.List(ctx, vault.KindPending, vault.Local) // they run out by themselves if this fails
	for _, rec := range recs {
		p, err := decodePending(rec)
		if err == nil && p.Flow == FlowCode && p.account() == by.account() && len(oauth.MissingScopes(p.Requested, by.Requested)) == 0 {
			pl.drop(ctx, p)
		}
	}
}

// Pendings lists the logins of a principal (all when empty) that wait for a person,
// oldest first as the store lists them.
func (e *Engine) Pendings(ctx context.Context, principal string) ([]Pending, error) {
	recs, err := e.env.Store.List(ctx, vault.KindPending, vault.Local)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return nil, fmt.Errorf("list pending logins: %w", err)
	}
	var out []Pending
	for _, rec := range recs {
		p, err := decodePending(rec)
		if err != nil || !time.Now().Before(p.Expires) || principal != "" && p.account().Normal().Principal != principal {
			continue
		}
		out = append(out, *p.view())
	}
	return out, nil
}

// Cancel forgets a login that waits; it is not an error if it is gone already.
func (e *Engine) Cancel(ctx context.Context, state string) error {
	_, err := e.env.Store.Take(ctx, pendingKey(state))
	if errors.Is(err, vault.ErrNotFound) {
		return nil
	}
	e.pendings.waiting.finish(state, outcome{err: fmt.Errorf("%w: it was cancelled", ErrDenied)})
	return err
}

// sweep removes logins that ran out. It is house-keeping; a later one will
// do as well.
func (pl *pendingLogins) sweep(ctx context.Context) (removed int) {
	recs, _ := pl.Store.List(ctx, vault.KindPending, vault.Local)
	for _, rec := range recs {
		p, err := decodePending(rec)
		if err == nil && !time.Now().Before(p.Expires) && pl.Store.Delete(ctx, rec.Key, rec.Version) == nil {
			removed++
		}
	}
	return removed
}
