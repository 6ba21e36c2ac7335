package usher

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/vault"
)

// LoginOptions configure [Host.Login] and [Host.LoginAll]. The zero value works.
type LoginOptions struct {
	// Redirect is the URL of a page of the program's own that receives the answer of the
	// consent page and passes its query to [Host.CompleteLogin]. Empty: the host listens
	// at a loopback address.
	Redirect string
	// Device asks for a code that the user enters on another device. LoginAll uses it
	// only for servers that support it.
	Device bool
	// Scopes are requested beside those that the server asks for.
	Scopes []string
	// Mode selects the accounts of LoginAll. Default: [bulk.ModeMissing].
	Mode bulk.Mode
}

// Login is a login that waits for the user.
type Login struct {
	Account auth.Account
	URL     string // the page to open; empty when the login is done already
	Code    string // what to enter there, for a device login
	State   string // identifies the login, see Host.CompleteLogin
	Expires time.Time

	host *Host
	done chan struct{} // closed when err is set
	err  error
}

// Login begins a login and returns at once. Show the user the URL, and wait with
// [Login.Wait]. The login ends when the answer arrives at the loopback address, through
// [Host.CompleteLogin] or [Login.Complete], in this process or in another one with the
// same store. Connected clients use it from then on.
func (h *Host) Login(ctx context.Context, account string, opt *LoginOptions) (*Login, error) {
	var o LoginOptions
	if opt != nil {
		o = *opt
	}
	a, err := h.account(account)
	if err != nil {
		return nil, err
	}
	srv, err := h.target(ctx, a)
	if err != nil {
		return nil, err
	}
	engine := h.app.Auth()
	l := &Login{Account: a, host: h, done: make(chan struct{})}
	if _, err := engine.Machine(ctx, a, srv, nil); !errors.Is(err, auth.ErrNoFlow) {
		if err != nil {
			return nil, err
		}
		close(l.done)
		return l, h.reconnect(ctx, a)
	}
	begin := engine.Begin
	if o.Device {
		begin = engine.BeginDevice
	}
	p, err := begin(ctx, a, srv, &auth.LoginOptions{Scopes: o.Scopes, Redirect: o.Redirect, Listen: o.Redirect == ""})
	if err != nil {
		return nil, err
	}
	l.URL, l.State, l.Expires = p.AuthorizeURL, p.State, p.Expires
	if p.Device != nil {
		l.URL, l.Code = p.Device.VerificationURI, p.Device.UserCode
	}
	if !h.spawn(func() { l.follow(p.Device != nil) }) {
		return nil, auth.ErrClosed
	}
	return l, nil
}

// follow waits for the end of the login, and makes connections use it.
func (l *Login) follow(device bool) {
	defer close(l.done)
	wait := l.host.app.Auth().Wait
	if device {
		wait = l.host.app.Auth().PollDevice
	}
	if _, l.err = wait(l.host.life, l.State); l.err == nil {
		_ = l.host.reconnect(l.host.life, l.Account) // the next call connects anyway
	}
}

// Wait returns nil when the login is done, or why it failed. The login goes on when ctx
// ends.
func (l *Login) Wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Complete ends the login with what the user pasted: the address that the browser was
// sent to, or the code in it.
func (l *Login) Complete(ctx context.Context, pasted string) error {
	_, err := l.host.app.Auth().Paste(ctx, l.State, pasted)
	return err
}

// Cancel gives the login up.
func (l *Login) Cancel(ctx context.Context) error { return l.host.app.Auth().Cancel(ctx, l.State) }

// CompleteLogin ends the login that the state in query belongs to, begun by Login or
// LoginAll, in this process or in another one with the same store. Query is that of the
// redirect to LoginOptions.Redirect: state, code, iss, or error.
func (h *Host) CompleteLogin(ctx context.Context, query url.Values) (*auth.Login, error) {
	answer, err := oauth.ReadCallback(query)
	if err != nil {
		return nil, err
	}
	return h.app.Auth().Complete(ctx, answer)
}

// Logout deletes the login of an account and revokes its tokens where the server
// supports that.
func (h *Host) Logout(ctx context.Context, account string) (*auth.Logout, error) {
	a, err := h.account(account)
	if err != nil {
		return nil, err
	}
	return h.logout(ctx, a)
}

// Logins are the logins of one [Host.LoginAll].
type Logins struct {
	driver *bulk.Driver
	events *event.Subscription[bulk.Event]
	ready  chan struct{} // closed when every login has begun, failed or been skipped
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// LoginAll begins logins for the named accounts, or for all servers, and returns at
// once. The program shows what [Logins.Events] and [Logins.Rows] say, and completes each
// login by its state, or leaves that to the loopback address. Close the result.
func (h *Host) LoginAll(ctx context.Context, accounts []string, opt *LoginOptions) (*Logins, error) {
	var o LoginOptions
	if opt != nil {
		o = *opt
	}
	if o.Mode == "" {
		o.Mode = bulk.ModeMissing
	}
	targets, err := h.targets(ctx, accounts)
	if err != nil {
		return nil, err
	}
	d := bulk.New(bulk.NewEngine(h.app.Auth(), &bulk.EngineOptions{Principal: h.principal, Scopes: o.Scopes}),
		&bulk.Options{Bulk: h.app.Config().Usher.Bulk, Backlog: 8*len(targets) + 16})
	life, stop := context.WithCancel(h.life)
	l := &Logins{driver: d, events: d.Subscribe(), ready: make(chan struct{}), stop: stop}
	done := d.Subscribe()
	d.Queue(targets)
	l.work.Go(func() {
		defer close(l.ready)
		d.Prepare(life, targets, o.Mode, bulk.Redirect{URI: o.Redirect, Listen: o.Redirect == "", Device: o.Device}, nil)
	})
	l.work.Go(func() {
		for e := range done.All(life) {
			if a, err := h.account(e.Server); err == nil && e.Phase == bulk.PhaseConnected {
				_ = h.reconnect(life, a) // the next call connects anyway
			}
		}
	})
	if !h.spawn(func() { <-life.Done(); _ = l.Close() }) {
		return nil, errors.Join(auth.ErrClosed, l.Close())
	}
	return l, nil
}

// Events returns the subscription to what happens to these logins, from the first event
// on. One goroutine reads it.
func (l *Logins) Events() *event.Subscription[bulk.Event] { return l.events }

// Rows returns the state of every login. Row.Login has the URL to open and the state.
func (l *Logins) Rows() []bulk.Row { return l.driver.Rows() }

// Complete ends the login with this state by the code from the consent page. Iss is the
// parameter of that name, empty if there was none.
func (l *Logins) Complete(ctx context.Context, state, code, iss string) error {
	_, err := l.driver.Complete(ctx, state, vault.NewSecret(code), iss)
	return err
}

// Cancel gives up the login with this state.
func (l *Logins) Cancel(ctx context.Context, state string) error {
	return l.driver.Cancel(ctx, state)
}

// Wait returns nil when no login waits any more; Rows says how each one ended.
func (l *Logins) Wait(ctx context.Context) error {
	select {
	case <-l.ready:
		return l.driver.Wait(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the subscription. Logins that wait for the user stay in the store.
func (l *Logins) Close() error {
	l.stop()
	err := l.driver.Close()
	l.work.Wait()
	return err
}
