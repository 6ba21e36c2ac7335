package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/console"
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
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	targets, err := h.LoginTargets(ctx, o.accounts)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		a.note("no server here can be logged in to; usher add NAME URL")
		return nil
	}
	d := bulk.New(bulk.NewEngine(h.Auth(), &bulk.EngineOptions{Where: "usher login", Scopes: o.scopes}), &bulk.Options{Bulk: h.Config().Usher.Bulk})
	defer func() { _ = d.Close() }() // logins that wait go on to wait in the store
	wait, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	show := a.newBoard(d, o.json)
	defer show.close()
	via := bulk.Redirect{Listen: !o.paste, Device: o.device}
	page := &consents{a: a, d: d, o: o}
	d.Prepare(wait, targets, mode, via, func(out bulk.Outcome) {
		show.outcome(out)
		if out.Status == bulk.StatusPending {
			page.open(wait)
		}
	})
	page.list(wait)
	_ = d.Wait(wait) // what still waits is told below
	show.close()
	for _, row := range d.Rows() {
		if row.Phase == bulk.PhaseConnected {
			_ = h.Relogin(ctx, row.Account) // the next call connects anyway
		}
	}
	return a.loginSummary(d, o, loginNext{})
}

// consents brings the person to the consent pages: one local page that lists them
// all where there is a browser, a list of addresses and a place to paste elsewhere.
type consents struct {
	a    *app
	d    manyLogins
	o    loginOptions
	once sync.Once
}

// byPage reports whether there is a browser to show the one page in.
func (c *consents) byPage() bool {
	return c.o.browser || !c.o.paste && !c.o.noBrowser && !c.o.device && c.a.hasBrowser()
}

// open shows the page as soon as the first login waits, however long the slowest
// server takes. Only the first call does anything.
func (c *consents) open(ctx context.Context) {
	if c.o.json || !c.byPage() {
		return
	}
	c.once.Do(func() {
		page := console.NewConsent(c.d, nil)
		link, err := page.Start(ctx)
		if err != nil {
			c.a.report(withHint(err, "follow the addresses by hand: the same command with --no-browser"))
			return
		}
		context.AfterFunc(ctx, func() { _ = page.Close() }) // the board says the rest
		c.a.note("one page for all of them: %s", link)
		c.a.note("Ctrl-C is safe: what is consented stays, the rest can be resumed.")
		go func() { // some browsers stay until they are closed
			if err := OpenBrowser(ctx, c.a.io.env("BROWSER"), link); err != nil {
				c.a.note("it did not open by itself: %v", err)
			}
		}()
	})
}

// list prints what waits, where there is no page, and takes pastes from then on.
func (c *consents) list(ctx context.Context) {
	if c.o.json || c.byPage() || waiting(c.d) == 0 {
		return
	}
	c.once.Do(func() {
		c.a.note("open these anywhere; paste the address you end up on (any order), or use the code")
		n := 0
		for _, group := range bulk.ByIssuer(c.d.Rows(), func(r bulk.Row) string { return r.Issuer }) {
			for _, row := range group.Items {
				if row.Login == nil {
					continue
				}
				n++
				if dev := row.Login.Device; dev != nil {
					c.a.note("  %d %s  code %s at %s", n, row.Server, dev.UserCode, dev.VerificationURI)
					c.a.qr(dev)
					continue
				}
				c.a.note("  %d %s  %s", n, row.Server, row.Login.AuthorizeURL)
			}
		}
		go c.a.takePastes(ctx, c.d)
	})
}

// waiting counts the accounts that wait for a person.
func waiting(d manyLogins) (n int) {
	for _, row := range d.Rows() {
		if row.Login != nil {
			n++
		}
	}
	return n
}

// takePastes hands every pasted line to the login it belongs to.
func (a *app) takePastes(ctx context.Context, d manyLogins) {
	for line := range a.pastes(ctx) {
		if _, err := d.Paste(ctx, "", line); err != nil && ctx.Err() == nil {
			a.report(err)
		}
	}
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

// board shows the phases of all logins: redrawn in place on a terminal, a line per
// step elsewhere, NDJSON with --json.
type board struct {
	a      *app
	d      manyLogins
	enc    *bulk.Encoder
	cancel context.CancelFunc
	done   chan struct{}
	drawn  int
}

func (a *app) newBoard(d manyLogins, asJSON bool) *board {
	ctx, cancel := context.WithCancel(context.Background())
	b := &board{a: a, d: d, cancel: cancel, done: make(chan struct{})}
	if asJSON {
		b.enc = bulk.NewEncoder(a.io.Out)
	}
	sub := d.Subscribe()
	go func() {
		defer close(b.done)
		defer sub.Close()
		for e := range sub.All(ctx) {
			b.event(e)
		}
	}()
	return b
}

// outcome tells of a login that was begun, skipped or failed.
func (b *board) outcome(o bulk.Outcome) {
	if b.enc != nil {
		_ = b.enc.Outcome(o) // a reader that left is noticed at the end
	}
}

func (b *board) event(e bulk.Event) {
	switch {
	case b.enc != nil:
		_ = b.enc.Event(e) // a reader that left is noticed at the end
	case b.a.io.ErrTTY:
		b.draw()
	case e.Phase.Ended():
		b.a.note("  %-16s %s", e.Server, phaseWords(e.Phase, e.Detail))
	}
}

// draw writes all rows over those drawn before.
func (b *board) draw() {
	var out strings.Builder
	if b.drawn > 0 {
		fmt.Fprintf(&out, "\x1b7\x1b[%dA\r", b.drawn)
	}
	rows := b.d.Rows()
	for _, row := range rows {
		line := fmt.Sprintf("  %-16s %s", row.Server, phaseWords(row.Phase, row.Detail))
		if row.Phase == bulk.PhaseAwaiting {
			line += fmt.Sprintf("  %d s", int(time.Since(row.Since).Seconds()))
		}
		fmt.Fprintf(&out, "\x1b[K%s\n", cut(clean(line), b.a.io.Width-1))
	}
	if b.drawn > 0 {
		out.WriteString("\x1b8")
	}
	b.drawn = len(rows)
	fmt.Fprint(b.a.io.Err, out.String())
}

func phaseWords(p bulk.Phase, detail string) string {
	words := map[bulk.Phase]string{
		bulk.PhaseQueued: "… its turn comes", bulk.PhaseDiscovering: "… finding out where to log in",
		bulk.PhaseAwaiting: "… waiting for your consent", bulk.PhaseExchanging: "… almost there",
		bulk.PhaseConnected: "✔ connected", bulk.PhaseFailed: "✖ failed", bulk.PhaseSkipped: "– skipped",
	}[p]
	if detail != "" {
		words += ": " + detail
	}
	return cleanLine(words)
}

// close ends the board; what has happened by then is shown.
func (b *board) close() {
	b.cancel()
	<-b.done
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
