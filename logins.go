package usher

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/vault"
)

// loginTime is how long a login that an agent began is followed.
const loginTime = 10 * time.Minute

// logins lets agents begin logins. Nothing here waits for a person or opens a
// browser; what a person finishes later is noticed in the background.
type logins struct{ h *Host }

// Begin starts a login at "server", "server@label" or "all" and returns at once.
func (l *logins) Begin(ctx context.Context, principal, target string) (surface.Login, error) {
	if target == "all" {
		return l.beginAll(ctx, principal)
	}
	a := auth.ParseAccount(principal, target)
	srv, err := l.h.Target(ctx, a)
	if err != nil {
		return surface.Login{}, err
	}
	if _, err := l.h.engine.Machine(ctx, a, srv, nil); !errors.Is(err, auth.ErrNoFlow) {
		if err != nil {
			return surface.Login{}, err
		}
		return surface.Login{Server: a.String(), State: "done"}, l.h.Relogin(ctx, a)
	}
	p, err := l.h.engine.Begin(ctx, a, srv, l.options(a, srv))
	if err != nil {
		return surface.Login{}, err
	}
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

// beginAll begins a login at every server that says it needs one.
func (l *logins) beginAll(ctx context.Context, principal string) (surface.Login, error) {
	markdown := ""
	for _, s := range l.h.Status().Servers {
		if s.Lane != "" || !s.Auth.NeedsLogin() {
			continue
		}
		name := accountName(s.Name, s.Account)
		one, err := l.Begin(ctx, principal, name)
		switch {
		case err != nil:
			markdown += fmt.Sprintf("- **%s**: %v\n", name, err)
		case one.URL != "":
			markdown += fmt.Sprintf("- **%s**: [log in](%s)\n", name, one.URL)
		}
	}
	if markdown == "" {
		return surface.Login{Server: "all", State: "done", Markdown: "No server says that it needs a login."}, nil
	}
	return surface.Login{Server: "all", Flow: "browser", State: "pending", Expires: time.Now().Add(loginTime), Markdown: "Open these, in any order:\n\n" + markdown}, nil
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

func pendingLogin(p auth.Pending) surface.Login {
	return surface.Login{
		Server: p.Account.String(), Flow: "browser", State: "pending", Handle: handle(p.State), URL: p.AuthorizeURL, Expires: p.Expires,
	}
}

// handle names a login without giving its state away.
func handle(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:6])
}

// Complete ends a login with the address that the browser was sent to.
func (l *logins) Complete(ctx context.Context, principal, target, redirectURL string) (surface.Login, error) {
	done, err := l.h.engine.Paste(ctx, "", redirectURL)
	if err != nil {
		return surface.Login{}, err
	}
	if want := auth.ParseAccount(principal, target); target != "" && done.Account != want {
		return surface.Login{Server: done.Account.String(), State: "done", Markdown: fmt.Sprintf("That was the login of %s, which is done now; %s still waits.", done.Account, want)}, nil
	}
	return surface.Login{Server: done.Account.String(), State: "done"}, l.h.Relogin(ctx, done.Account)
}

// Status is how the logins of a target stand.
func (l *logins) Status(ctx context.Context, principal, target string) ([]surface.Login, error) {
	all, err := l.h.engine.Accounts(ctx, principal)
	if err != nil && len(all) == 0 {
		return nil, err
	}
	var out []surface.Login
	for _, s := range all {
		if target != "" && target != s.Account.String() {
			continue
		}
		login := surface.Login{Server: s.Account.String(), Reason: s.Reason}
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
