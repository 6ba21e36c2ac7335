package login

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/cli/cmdutil"
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

// Missing logs in to each server that needs it, as usher login --missing does.
func Missing(ctx context.Context, f *cmdutil.Factory, wait time.Duration) error {
	o := &loginOptions{f: f, missing: true, wait: wait}
	mode, _, err := loginMode(o)
	if err != nil {
		return err
	}
	return loginMany(ctx, f, o, mode)
}

// loginMany logs many accounts in at once: one page, or one list of addresses, and
// a board that shows how far each of them is.
func loginMany(ctx context.Context, f *cmdutil.Factory, o *loginOptions, mode bulk.Mode) error {
	screen(f, o.json)
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	if len(o.tags) > 0 {
		names, err := cmdutil.Tagged(h.Config(), o.tags, cmdutil.CanLogIn)
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
		f.Note("no server here can be logged in to; usher add NAME URL")
		return nil
	}
	if err := unlockFirst(ctx, f, h); err != nil {
		return err
	}
	d := bulk.New(bulk.NewEngine(h.Auth(), &bulk.EngineOptions{Where: "usher login", Scopes: o.scopes}), bulkOptions(f, h, o, len(targets)))
	defer func() { _ = d.Close() }() // logins that wait go on to wait in the store
	wait, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	show := newBoard(f, d, o.json, stop)
	defer show.close()
	answers := readAnswers(wait, f, d, show, o)
	defer answers.close()
	page := &consents{f: f, d: d, o: o}
	defer page.close()
	targets = loginUnattended(wait, f, h, d, o, targets)
	d.Prepare(wait, targets, mode, bulk.Redirect{Listen: !o.paste, Device: prefersDevice(f, o)}, func(out bulk.Outcome) {
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
	return loginSummary(f, d, o, loginNext{})
}

// eventsPerLogin is more events than one login has, unless its answers fail often.
const eventsPerLogin = 16

// bulkOptions make room for all events where a program reads them: it must not miss
// one because it is slow.
func bulkOptions(f *cmdutil.Factory, h *app.App, o *loginOptions, logins int) *bulk.Options {
	opt := &bulk.Options{Bulk: h.Config().Usher.Bulk}
	if o.json {
		opt.Backlog = max(event.DefaultBacklog, eventsPerLogin*logins)
	}
	return opt
}

// prefersDevice reports whether a code on another screen is the better way: when it was
// asked for, or there is no browser and no program that opens the addresses.
func prefersDevice(f *cmdutil.Factory, o *loginOptions) bool {
	return o.device || !o.json && !o.choosesWay() && !cmdutil.HasBrowser(f)
}

// loginUnattended logs the named servers in that need no person, and returns the others.
// Where many were chosen by a flag, such servers are skipped.
func loginUnattended(ctx context.Context, f *cmdutil.Factory, h *app.App, d *bulk.Driver, o *loginOptions, targets []bulk.Target) []bulk.Target {
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
func loginSummary(f *cmdutil.Factory, d manyLogins, o *loginOptions, next loginNext) error {
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
		f.Note("%d logged in, %d skipped, %d failed, %d waiting", count[bulk.PhaseConnected], count[bulk.PhaseSkipped], len(failed), len(waiting))
		for _, name := range failed {
			f.Note("  next: %susher doctor %s", next.on, name)
		}
		if len(waiting) > 0 {
			f.Note("  to go on: %s", cmp.Or(next.again, "usher login --missing "+strings.Join(waiting, " ")))
		}
	}
	switch {
	case len(failed) > 0:
		return &cmdutil.SilentError{Code: cmdutil.ExitError}
	case len(waiting) > 0:
		return &cmdutil.SilentError{Code: cmdutil.ExitWaiting}
	}
	return nil
}

// loginMode reads the flags that choose many accounts.
func loginMode(o *loginOptions) (bulk.Mode, bool, error) {
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
