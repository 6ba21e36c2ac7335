package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/event"
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
func (a *app) loginMany(ctx context.Context, o loginOptions, mode bulk.Mode) error {
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
	targets, err := h.LoginTargets(ctx, o.accounts)
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
	d := bulk.New(bulk.NewEngine(h.Auth(), &bulk.EngineOptions{Where: "usher login", Scopes: o.scopes}), &bulk.Options{Bulk: h.Config().Usher.Bulk})
	defer func() { _ = d.Close() }() // logins that wait go on to wait in the store
	wait, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	show := a.newBoard(d, o.json, stop)
	defer show.close()
	via := bulk.Redirect{Listen: !o.paste, Device: o.device}
	page := &consents{a: a, d: d, o: o}
	defer page.close()
	d.Prepare(wait, targets, mode, via, func(out bulk.Outcome) {
		show.outcome(out)
		if out.Status == bulk.StatusPending {
			page.open(wait)
		}
	})
	page.list(wait)
	_ = d.Wait(wait) // what still waits is told below
	page.close()
	show.close()
	for _, row := range d.Rows() {
		if row.Phase == bulk.PhaseConnected {
			_ = h.Relogin(ctx, row.Account) // the next call connects anyway
		}
	}
	return a.loginSummary(d, o, loginNext{})
}

// loginNext says what to type next where the logins are not those of this machine.
type loginNext struct {
	on    string // what comes before "usher doctor NAME"; "" on this machine
	again string // how to go on with what waits; "" names the accounts
}

// loginSummary says what failed and what waits, each with the next command.
func (a *app) loginSummary(d manyLogins, o loginOptions, next loginNext) error {
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
			a.note("  to go on: %s", cmp.Or(next.again, "usher login "+strings.Join(waiting, " ")))
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
