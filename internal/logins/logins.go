package logins

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// loginTime is how long a login of an agent to all servers is followed.
const loginTime = 10 * time.Minute

// AgentLogins lets agents begin logins; it is the policy.Logins of a gate. No method
// waits for a person or opens a browser; what a person finishes later is noticed in the
// background.
type AgentLogins struct{ m *Manager }

// Begin starts a login and returns at once.
func (l *AgentLogins) Begin(ctx context.Context, k host.Key) (policy.Login, error) {
	a := account(k)
	srv, err := l.m.Target(ctx, a)
	if err != nil {
		return policy.Login{}, err
	}
	if err := l.m.mayDiscover(a, srv); err != nil {
		l.failed(ctx, a, err)
		return policy.Login{}, err
	}
	if _, err := l.m.engine.Machine(ctx, a, srv, nil); !errors.Is(err, auth.ErrNoFlow) {
		if err != nil {
			l.failed(ctx, a, err)
			return policy.Login{}, err
		}
		l.m.pending.clear(a)
		l.m.accounts.Expire(k.Principal)
		return policy.Login{Server: a.String(), State: "done"}, l.m.Reconnect(ctx, a)
	}
	p := l.join(ctx, a, srv)
	var flow string
	if p != nil {
		flow = l.flowOf(p)
	} else if p, flow, err = l.begin(ctx, a, srv); err != nil {
		l.failed(ctx, a, err)
		return policy.Login{}, err
	}
	l.m.accounts.Expire(k.Principal) // the account exists from now on
	l.m.pending.clear(a)
	l.follow(p)
	return shownLogin(p, flow), nil
}

// storeInterval is how often the store is asked for logins that servers wait for.
const storeInterval = 2 * time.Second

// watchStore publishes the logins that other processes finish: a person may log in with
// another usher than the one that serves. It asks the store only while a server waits
// for a login.
func (l *AgentLogins) watchStore(states *event.Subscription[event.Event]) {
	defer states.Close()
	waiting := map[auth.Account]int64{} // what the store had when it was refused
	next := time.Now()
	for l.m.life.Err() == nil {
		ctx, stop := context.WithDeadline(l.m.life, next)
		if len(waiting) == 0 {
			ctx = l.m.life // there is nothing to ask for
		}
		e, _, err := states.Next(ctx)
		stop()
		switch {
		case err == nil:
			l.noteWaiting(waiting, e)
		case errors.Is(err, event.ErrClosed):
			return // the program closed its bus
		}
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(storeInterval)
		for a, had := range waiting {
			if has := l.m.engine.Has(l.m.life, a); has != 0 && has != had {
				delete(waiting, a)
				l.m.gate().Relogin(host.Key{Principal: cmp.Or(a.Principal, vault.Local), Server: a.Server, Account: a.Label})
				l.m.bus.Publish(event.GrantChanged{Header: event.Header{At: time.Now(), Principal: a.Principal, Server: a.Server, Account: a.Label}, Change: event.GrantStored})
			}
		}
	}
}

// noteWaiting records whether a server waits for a login.
func (l *AgentLogins) noteWaiting(waiting map[auth.Account]int64, e event.Event) {
	switch e := e.(type) {
	case event.ServerChanged:
		a := auth.Account{Principal: e.Principal, Server: e.Server, Label: e.Account}
		if _, known := waiting[a]; host.State(e.To) == host.NeedsAuth && !known {
			waiting[a] = l.m.engine.Has(l.m.life, a)
		} else if host.State(e.To) == host.Connected {
			delete(waiting, a)
		}
	case event.GrantChanged:
		if e.Change == event.GrantStored {
			delete(waiting, auth.Account{Principal: e.Principal, Server: e.Server, Label: e.Account})
		}
	}
}

// handle names a login without giving its state away.
func handle(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:6])
}

// Complete redeems the URL that the browser was sent to, for a pending login of the
// principal for which may is true. The code of any other login is not exchanged, and
// the error is that of an unknown one.
func (l *AgentLogins) Complete(ctx context.Context, principal string, may func(server, account string) bool, redirectURL string) (policy.Login, error) {
	own := func(a auth.Account) bool {
		return cmp.Or(a.Principal, vault.Local) == cmp.Or(principal, vault.Local) && may(a.Server, a.Label)
	}
	done, err := l.m.engine.PasteFor(ctx, "", redirectURL, own)
	if err != nil {
		return policy.Login{}, err
	}
	return policy.Login{Server: done.Account.String(), State: "done"}, l.m.Reconnect(ctx, done.Account)
}

// Status returns the logins of a principal.
func (l *AgentLogins) Status(ctx context.Context, principal string) ([]policy.Login, error) {
	all, err := l.m.engine.Accounts(ctx, principal)
	if err != nil && len(all) == 0 {
		return nil, err
	}
	failures := l.m.pending.failuresOf(principal)
	var out []policy.Login
	seen := map[auth.Account]bool{}
	for _, s := range all {
		login := policy.Login{Server: s.Account.String(), Reason: s.Reason}
		seen[s.Account] = true
		switch {
		case s.State == auth.StateOK:
			login.State = policy.LoginDone
		case s.Pending != nil:
			login = shownLogin(s.Pending, l.flowOf(s.Pending))
		default:
			login.State = policy.LoginFailed
			if i := slices.IndexFunc(failures, func(f loginFailure) bool { return f.account == s.Account }); i >= 0 {
				login.Reason = failures[i].reason
			}
		}
		out = append(out, login)
	}
	for _, f := range failures {
		if !seen[f.account] {
			out = append(out, policy.Login{Server: f.account.String(), State: policy.LoginFailed, Reason: f.reason})
		}
	}
	return out, nil
}
