package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/vault"
)

// State is where the login of an account stands.
type State string

// The states.
const (
	StateNone       State = "none"        // no login, and nothing says that one is needed
	StateOK         State = "ok"          // there is a usable grant
	StatePending    State = "pending"     // waits for a person to consent
	StateNeedsLogin State = "needs_login" // a person has to log in
)

// Status is what there is to know about an account's login, without its tokens.
type Status struct {
	Account Account
	State   State
	// Reason and Command are set for StateNeedsLogin, Command for StatePending too.
	Reason  string
	Command string
	// Issuer and what follows describe the grant, if there is one.
	Issuer     string
	Flow       Flow
	ServerURL  string
	ClientID   string
	Client     string // where the client id came from, one of the Source constants
	Scopes     []string
	Obtained   time.Time
	Expires    time.Time // zero when the server does not say
	CanRefresh bool
	Generation int64
	// Trouble says why the last renewal failed; the grant is kept.
	Trouble string
	// Pending is the newest login that waits for a person, if there is one.
	Pending *Pending
}

// Status says where the login of an account stands. It asks nobody but the store.
func (e *Engine) Status(ctx context.Context, a Account) (Status, error) {
	a = a.Normal()
	g, err := e.grants.Grants.Current(ctx, a)
	if err != nil {
		return Status{Account: a}, err
	}
	s := describe(ctx, e.grants, a, g)
	waiting, err := e.Pendings(ctx, a.Principal)
	if err != nil {
		return s, err
	}
	s.addPending(waiting)
	return s, nil
}

// addPending shows the newest login that waits.
func (s *Status) addPending(waiting []Pending) {
	for _, p := range waiting {
		if p.Account == s.Account && (s.Pending == nil || p.Created.After(s.Pending.Created)) {
			s.Pending = &p
		}
	}
	if s.Pending != nil && s.State != StateOK {
		s.State, s.Command = StatePending, s.Pending.Command()
	}
}

// describe says where a login stands by its grant, which may be nil.
func describe(ctx context.Context, m *grants.Manager, a Account, g *grants.Grant) Status {
	s := Status{Account: a, State: StateNone}
	if g != nil {
		s.State, s.Issuer, s.Flow, s.ServerURL, s.Scopes = StateOK, g.Issuer, g.Flow, g.ServerURL, g.Scopes
		s.ClientID, s.Client, s.Obtained, s.Expires = g.Client.ID, g.Client.Source, g.Obtained, g.Expires
		s.CanRefresh, s.Generation = g.Renewable(), g.Generation
	}
	health := m.Health(ctx, a, g)
	s.Trouble = health.Trouble
	if health.NeedsLogin != "" {
		s.State, s.Reason, s.Command = StateNeedsLogin, health.NeedsLogin, a.LoginCommand()
	}
	return s
}

// Wants returns the scopes that the next login of an account has to ask for because
// its server wants more permission; nil when it does not.
func (e *Engine) Wants(ctx context.Context, a Account) []string {
	step, err := e.grants.Steps.Load(ctx, a.Normal())
	if err != nil || !step.Open {
		return nil
	}
	return step.Scopes
}

// Accounts lists every login of a principal (all when empty) that is stored or
// waits, ordered as the store lists them. Records that cannot be read do not hide
// the others: they come as an error beside the list.
func (e *Engine) Accounts(ctx context.Context, principal string) ([]Status, error) {
	recs, err := e.env.Store.List(ctx, vault.KindGrant, principal)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return nil, fmt.Errorf("list logins: %w", err)
	}
	waiting, pendingErr := e.Pendings(ctx, principal)
	var out []Status
	seen := map[Account]bool{}
	for _, rec := range recs {
		g, decodeErr := grants.Decode(rec)
		if decodeErr != nil {
			err = errors.Join(err, decodeErr)
			continue
		}
		a := ParseAccount(rec.Principal, rec.Name)
		s := describe(ctx, e.grants, a, g)
		s.addPending(waiting)
		seen[a] = true
		out = append(out, s)
	}
	for _, p := range waiting {
		if !seen[p.Account] {
			seen[p.Account] = true
			s := Status{Account: p.Account, State: StateNone}
			s.addPending(waiting)
			out = append(out, s)
		}
	}
	return out, errors.Join(err, pendingErr)
}

// ClientInfo is a client registration of this program.
type ClientInfo struct {
	Issuer   string
	ClientID string
	Redirect string
	Class    string // which redirect addresses share it
	Created  time.Time
	InUse    bool // a login or a pending one needs it
}

// Clients lists the client registrations.
func (e *Engine) Clients(ctx context.Context) ([]ClientInfo, error) {
	all, used, err := e.clients.list(ctx)
	var out []ClientInfo
	for _, r := range all {
		out = append(out, ClientInfo{
			Issuer: r.Issuer, ClientID: r.Client.ID, Redirect: r.Redirect, Class: r.Group, Created: r.Created,
			InUse: used[clientUse{r.Issuer, r.Client.ID}],
		})
	}
	return out, err
}

func (rg *registrar) list(ctx context.Context) ([]registration, map[clientUse]bool, error) {
	recs, err := rg.Store.List(ctx, vault.KindClient, vault.Local)
	if err != nil && !errors.Is(err, vault.ErrCorrupt) {
		return nil, nil, fmt.Errorf("list client registrations: %w", err)
	}
	used, err := rg.inUse(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []registration
	for _, rec := range recs {
		r := registration{version: rec.Version}
		if json.Unmarshal(rec.Data, &r) == nil {
			out = append(out, r)
		}
	}
	return out, used, nil
}

// Pruned counts what Prune removed.
type Pruned struct {
	Clients int
	Pending int
	// Problems lists registrations that their servers did not delete; they are
	// forgotten here all the same.
	Problems []error
}

// Prune removes client registrations that no login uses, here and at their servers,
// and pending logins that ran out.
func (e *Engine) Prune(ctx context.Context) (Pruned, error) {
	out := Pruned{Pending: e.pendings.sweep(ctx)}
	all, used, err := e.clients.list(ctx)
	if err != nil {
		return out, err
	}
	for _, r := range all {
		if used[clientUse{r.Issuer, r.Client.ID}] {
			continue
		}
		if err := e.env.Store.Delete(ctx, registrationKey(r.Issuer, r.Group), r.version); err != nil {
			out.Problems = append(out.Problems, err)
			continue
		}
		out.Clients++
		if err := e.clients.deregister(ctx, &r); err != nil {
			out.Problems = append(out.Problems, fmt.Errorf("%s: %w", oauth.HostOf(r.Issuer), err))
		}
	}
	return out, nil
}
