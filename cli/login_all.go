package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/app"
)

// manyLogins is what a person is shown of many logins: those of a [bulk.Driver], or
// those that a courier carries answers to.
type manyLogins interface {
	Rows() []bulk.Row
	Subscribe() *event.Subscription[bulk.Event]
	Paste(ctx context.Context, state, text string) (*auth.Login, error)
}

// loginMany logs many accounts in at once: one page, or one list of addresses, and
// a board that shows how far each of them is.
func (a *factory) loginMany(ctx context.Context, o loginOptions, mode bulk.Mode) error {
	a.screen(o.json)
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	if len(o.tags) > 0 {
		names, err := tagged(h.Config(), o.tags, canLogIn)
		if err != nil {
			return err
		}
		o.accounts = append(o.accounts, slices.DeleteFunc(names, func(n string) bool { return slices.Contains(o.accounts, n) })...)
	}
	targets, err := h.Logins().Targets(ctx, o.accounts)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		a.note("no server here can be logged in to; usher add NAME URL")
		return nil
	}
	if err := a.unlockFirst(ctx, h); err != nil {
		return err
	}
	d := bulk.New(bulk.NewEngine(h.Auth(), &bulk.EngineOptions{Where: "usher login", Scopes: o.scopes}), a.bulkOptions(h, o, len(targets)))
	defer func() { _ = d.Close() }() // logins that wait go on to wait in the store
	wait, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	show := a.newBoard(d, o.json, stop)
	defer show.close()
	answers := a.readAnswers(wait, d, show, o)
	defer answers.close()
	page := &consents{a: a, d: d, o: o}
	defer page.close()
	targets = a.loginUnattended(wait, h, d, o, targets)
	d.Prepare(wait, targets, mode, bulk.Redirect{Listen: !o.paste, Device: a.prefersDevice(o)}, func(out bulk.Outcome) {
		show.outcome(out)
		if out.Status == bulk.StatusPending {
			page.open(wait)
			page.openNamed(wait, &out.Login)
		}
	})
	page.list(wait)
	answers.prepared()
	_ = d.Wait(answers.until) // what still waits is told below
	answers.close()
	page.close()
	show.close()
	for _, row := range d.Rows() {
		if row.Phase == bulk.PhaseConnected {
			_ = h.Logins().Reconnect(ctx, row.Account) // the next call connects anyway
		}
	}
	return a.loginSummary(d, o, loginNext{})
}

// eventsPerLogin is more events than one login has, unless its answers fail often.
const eventsPerLogin = 16

// bulkOptions make room for all events where a program reads them: it must not miss
// one because it is slow.
func (a *factory) bulkOptions(h *app.App, o loginOptions, logins int) *bulk.Options {
	opt := &bulk.Options{Bulk: h.Config().Usher.Bulk}
	if o.json {
		opt.Backlog = max(event.DefaultBacklog, eventsPerLogin*logins)
	}
	return opt
}

// prefersDevice reports whether a code on another screen is the better way: when it was
// asked for, or there is no browser and no program that opens the addresses.
func (a *factory) prefersDevice(o loginOptions) bool {
	return o.device || !o.json && !o.choosesWay() && !a.hasBrowser()
}

// loginUnattended logs the named servers in that need no person, and returns the others.
// Where many were chosen by a flag, such servers are skipped.
func (a *factory) loginUnattended(ctx context.Context, h *app.App, d *bulk.Driver, o loginOptions, targets []bulk.Target) []bulk.Target {
	if o.all || o.missing || o.expired {
		return targets
	}
	var rest []bulk.Target
	for _, t := range targets {
		if t.Server.Problem != nil || !needsNoPerson(t.Server) {
			rest = append(rest, t)
			continue
		}
		_ = d.Unattended(ctx, t, func(ctx context.Context) (*auth.Login, error) { // its row tells
			return h.Auth().Machine(ctx, t.Account, t.Server, &auth.LoginOptions{Scopes: o.scopes, Where: "usher login"})
		})
	}
	return rest
}

// needsNoPerson reports whether a server is logged in to by means of its definition.
func needsNoPerson(srv config.Server) bool {
	if srv.OAuth == nil {
		return false
	}
	switch srv.OAuth.Grant {
	case config.GrantClientCredentials, config.GrantJWTBearer, config.GrantEnterprise:
		return true
	}
	return false
}

// loginNext says what to type next where the logins are not those of this machine.
type loginNext struct {
	on    string // what comes before "usher doctor NAME"; "" on this machine
	again string // how to go on with what waits; "" names the accounts
}

// loginSummary says what failed and what waits, each with the next command.
func (a *factory) loginSummary(d manyLogins, o loginOptions, next loginNext) error {
	count := map[bulk.Phase]int{}
	var waiting, failed []string
	for _, row := range d.Rows() {
		count[row.Phase]++
		switch row.Phase {
		case bulk.PhaseFailed:
			failed = append(failed, row.Server)
		case bulk.PhaseAwaiting, bulk.PhaseExchanging:
			waiting = append(waiting, row.Server)
		}
	}
	if !o.json {
		a.note("%d logged in, %d skipped, %d failed, %d waiting", count[bulk.PhaseConnected], count[bulk.PhaseSkipped], len(failed), len(waiting))
		for _, name := range failed {
			a.note("  next: %susher doctor %s", next.on, name)
		}
		if len(waiting) > 0 {
			a.note("  to go on: %s", cmp.Or(next.again, "usher login --missing "+strings.Join(waiting, " ")))
		}
	}
	switch {
	case len(failed) > 0:
		return &silent{exitError}
	case len(waiting) > 0:
		return &silent{exitWaiting}
	}
	return nil
}

// loginMode reads the flags that choose many accounts.
func loginMode(o loginOptions) (bulk.Mode, bool, error) {
	var modes []bulk.Mode
	for mode, on := range map[bulk.Mode]bool{bulk.ModeAll: o.all, bulk.ModeMissing: o.missing, bulk.ModeExpired: o.expired} {
		if on {
			modes = append(modes, mode)
		}
	}
	switch len(modes) {
	case 0:
		return "", false, nil
	case 1:
		return modes[0], true, nil
	}
	return "", false, errors.New("choose one of --all, --missing and --expired")
}
