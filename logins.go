package usher

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// loginTime is how long a login that an agent began is followed.
const loginTime = 10 * time.Minute

// logins lets agents begin logins. Nothing here waits for a person or opens a
// browser; what a person finishes later is noticed in the background.
type logins struct{ h *Host }

// Begin starts a login and returns at once.
func (l *logins) Begin(ctx context.Context, k host.Key) (policy.Login, error) {
	a := account(k)
	srv, err := l.h.Target(ctx, a)
	if err != nil {
		return policy.Login{}, err
	}
	if _, err := l.h.engine.Machine(ctx, a, srv, nil); !errors.Is(err, auth.ErrNoFlow) {
		if err != nil {
			return policy.Login{}, err
		}
		l.h.accounts.expire(k.Principal)
		return policy.Login{Server: a.String(), State: "done"}, l.h.Relogin(ctx, a)
	}
	p, err := l.h.engine.Begin(ctx, a, srv, l.options(a, srv))
	if err != nil {
		return policy.Login{}, err
	}
	l.h.accounts.expire(k.Principal) // the account exists from now on
	l.follow(p)
	return pendingLogin(*p), nil
}

// options say where the answer comes back to: through the gateway where browsers reach
// it from outside, so that any replica can take it, else to this machine. A gateway
// cannot tell whose browser brings an answer, so it takes those of its own principal
// only; and an address that the definition of a server names is kept.
func (l *logins) options(a auth.Account, srv config.Server) *auth.LoginOptions {
	public := l.h.Config().Usher.Gateway.PublicURL
	named := srv.OAuth != nil && srv.OAuth.RedirectURI != ""
	if public == "" || named || cmp.Or(a.Principal, vault.Local) != l.h.principal {
		return &auth.LoginOptions{Listen: true, Where: "an agent"}
	}
	return &auth.LoginOptions{Redirect: callbackAddress(public), Where: "an agent"}
}

// follow makes what is connected use the login as soon as the person is done.
func (l *logins) follow(p *auth.Pending) {
	l.h.background.Go(func() {
		ctx, stop := context.WithTimeout(l.h.life, loginTime)
		defer stop()
		if _, err := l.h.engine.Wait(ctx, p.State); err == nil {
			_ = l.h.Relogin(ctx, p.Account) // the next call connects anyway
		}
	})
}

// lookForLogins is how often the store is asked for logins that servers wait for.
const lookForLogins = 2 * time.Second

// notice makes the logins known that other processes finish: a person may log in with
// another usher than the one that serves. The store is asked only while a server waits
// for a login.
func (l *logins) notice(states *event.Subscription[event.Event]) {
	defer states.Close()
	waiting := map[auth.Account]int64{} // what the store had when it was refused
	next := time.Now()
	for l.h.life.Err() == nil {
		ctx, stop := context.WithDeadline(l.h.life, next)
		if len(waiting) == 0 {
			ctx = l.h.life // there is nothing to ask for
		}
		e, _, err := states.Next(ctx)
		stop()
		switch {
		case err == nil:
			l.waits(waiting, e)
		case errors.Is(err, event.ErrClosed):
			return // the program's bus, and with it whoever would hear of a login
		}
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(lookForLogins)
		for a, had := range waiting {
			if has := l.h.engine.Has(l.h.life, a); has != 0 && has != had {
				delete(waiting, a)
				l.h.gate.Relogin(host.Key{Principal: cmp.Or(a.Principal, vault.Local), Server: a.Server, Account: a.Label})
				l.h.bus.Publish(event.GrantChanged{Header: event.Header{At: time.Now(), Principal: a.Principal, Server: a.Server, Account: a.Label}, Change: event.GrantStored})
			}
		}
	}
}

// waits takes in whether a server waits for a login.
func (l *logins) waits(waiting map[auth.Account]int64, e event.Event) {
	switch e := e.(type) {
	case event.ServerChanged:
		a := auth.Account{Principal: e.Principal, Server: e.Server, Label: e.Account}
		if _, known := waiting[a]; host.State(e.To) == host.NeedsAuth && !known {
			waiting[a] = l.h.engine.Has(l.h.life, a)
		} else if host.State(e.To) == host.Connected {
			delete(waiting, a)
		}
	case event.GrantChanged:
		if e.Change == event.GrantStored {
			delete(waiting, auth.Account{Principal: e.Principal, Server: e.Server, Label: e.Account})
		}
	}
}

func pendingLogin(p auth.Pending) policy.Login {
	return policy.Login{
		Server: p.Account.String(), Flow: "browser", State: "pending", Handle: handle(p.State), URL: p.AuthorizeURL, Expires: p.Expires,
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
func (l *logins) Complete(ctx context.Context, principal string, may func(server, account string) bool, redirectURL string) (policy.Login, error) {
	own := func(a auth.Account) bool {
		return cmp.Or(a.Principal, vault.Local) == cmp.Or(principal, vault.Local) && may(a.Server, a.Label)
	}
	done, err := l.h.engine.PasteFor(ctx, "", redirectURL, own)
	if err != nil {
		return policy.Login{}, err
	}
	return policy.Login{Server: done.Account.String(), State: "done"}, l.h.Relogin(ctx, done.Account)
}

// Status returns the logins of a principal.
func (l *logins) Status(ctx context.Context, principal string) ([]policy.Login, error) {
	all, err := l.h.engine.Accounts(ctx, principal)
	if err != nil && len(all) == 0 {
		return nil, err
	}
	var out []policy.Login
	for _, s := range all {
		login := policy.Login{Server: s.Account.String(), Reason: s.Reason}
		switch {
		case s.State == auth.StateOK:
			login.State = "done"
		case s.Pending != nil:
			login = pendingLogin(*s.Pending)
		default:
			login.State = "failed"
		}
		out = append(out, login)
	}
	return out, nil
}
