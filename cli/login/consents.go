package login

import (
	"context"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/console"
)

// consents brings the person to the consent pages: one local page that lists them
// all where there is a browser, a list of addresses and a place to paste elsewhere.
type consents struct {
	f *cmdutil.Factory
	d manyLogins
	o *loginOptions

	opening sync.WaitGroup // pages that openNamed opens

	mu     sync.Mutex // guards what follows
	begun  bool       // the page was opened, or the list begun
	page   *console.Consent
	timer  *time.Timer
	listed map[string]bool // states of the logins that were printed
}

// byPage reports whether there is a browser to show the one page in.
func (c *consents) byPage() bool {
	return c.o.browser || !c.o.paste && !c.o.noBrowser && !c.o.device && cmdutil.HasBrowser(c.f)
}

// listPatience is how long a list is held back so that it comes as one, in order.
const listPatience = 2 * time.Second

// open is called whenever a login waits. The page is shown with the first one, and
// a list soon after, however long the slowest server takes.
func (c *consents) open(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.json || c.begun {
		return
	}
	c.begun = true
	if !c.byPage() {
		c.timer = time.AfterFunc(listPatience, func() { c.list(ctx) })
		return
	}
	page := console.NewConsent(c.d, nil)
	link, err := page.Start(ctx)
	if err != nil {
		c.f.Report(cmdutil.WithHint(err, "follow the addresses by hand: the same command with --no-browser"))
		return
	}
	c.page = page
	c.f.Note("one page for all of them: %s", link)
	if !c.f.IO.ErrTTY { // the board says it elsewhere
		c.f.Note("Ctrl-C is safe: what is consented stays, the rest can be resumed.")
	}
	go func() {
		if err := cmdutil.OpenBrowser(ctx, c.f.IO.Env("BROWSER"), link); err != nil {
			c.f.Note("it did not open by itself: %v", err)
		}
	}()
}

// openNamed opens the page of one server that was named, where a program reads what is
// printed: for a person there is the one page.
func (c *consents) openNamed(ctx context.Context, p *auth.Pending) {
	if !c.o.json || c.o.all || c.o.missing || c.o.expired || !c.byPage() || p.AuthorizeURL == "" {
		return
	}
	c.opening.Go(func() {
		if err := cmdutil.Interactive(c.f).Show(ctx, p); err != nil {
			c.f.Note("%v", err)
		}
	})
}

// list prints what waits and was not printed, where there is no page. Pastes are
// taken from the first time on.
func (c *consents) list(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.json || c.byPage() || ctx.Err() != nil {
		return
	}
	for _, group := range bulk.ByIssuer(c.d.Rows(), func(r bulk.Row) string { return r.Issuer }) {
		for _, row := range group.Items {
			if row.Login != nil && !c.listed[row.Login.State] {
				c.print(ctx, row)
			}
		}
	}
}

// print needs mu.
func (c *consents) print(ctx context.Context, row bulk.Row) {
	if c.listed == nil {
		c.listed = map[string]bool{}
		c.f.Note("open these URLs in any browser, then paste the URLs you are redirected to, in any order")
		if !hasKeyboard(c.f) {
			go takePastes(ctx, c.f, c.d)
		}
	}
	c.listed[row.Login.State] = true
	n := len(c.listed)
	if dev := row.Login.Device; dev != nil {
		c.f.Note("  %d %s  code %s at %s", n, row.Server, dev.UserCode, dev.VerificationURI)
		showQR(c.f, dev)
		return
	}
	c.f.Note("  %d %s  %s", n, row.Server, row.Login.AuthorizeURL)
}

// close ends the page; a browser that looks at it gets to see how all ended.
func (c *consents) close() {
	c.opening.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.page != nil {
		_ = c.page.Close() // it has nothing to say
	}
}

// takePastes hands every pasted line to the login it belongs to.
func takePastes(ctx context.Context, f *cmdutil.Factory, d manyLogins) {
	for line := range pastes(ctx, f) {
		if _, err := d.Paste(ctx, "", line); err != nil && ctx.Err() == nil {
			f.Report(err)
		}
	}
}
