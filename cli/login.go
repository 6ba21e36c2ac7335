package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
)

type loginOptions struct {
	accounts                          []string
	device, paste, browser, noBrowser bool
	all, missing, expired             bool
	scopes                            []string
	tags                              []string
	wait                              time.Duration
	json                              bool
	courier                           []string // the command that reaches the far machine
	farUsher                          string
	far                               bool // this is the far end of a courier
}

func newCmdLogin(a *factory) *cobra.Command {
	var o loginOptions
	c := &cobra.Command{
		Use: "login [SERVER[@ACCOUNT]…]", Short: "Log in to a server, or to all of them at once", GroupID: "use", Args: between(0, -1),
		Long: `Log in to a server. On a machine with a browser its consent page is opened;
elsewhere the address is printed, and what the browser ends up on is pasted back.
Several identities at one server are told apart by a label: linear@work.

With --all, --missing or --expired every server (or those named) is logged in at
once: one local page lists the consents, grouped by who asks for them, and a board
shows how far each is.

With --tag it is those with the tag, and --missing unless another is given.

With --courier the logins are those of another machine, and the browser is here:
everything after it is the command that reaches that machine, up to the end or to a
-- that is followed by servers. Only what a browser sees goes over the line; tokens
stay on the machine they are for.

Nothing is lost by Ctrl-C: a login that waits can be finished within ten minutes, from
any terminal, with --paste or --no-browser, which take the answer to the login of that
account that is already waiting. A script does it in two steps: the first prints the
address and exits with 10, the second reads the answer from standard input.

With --json a program can drive the logins: it prints one JSON object a line and reads
answers from standard input, one a line: the address the browser ended at, or
{"state": …, "code": …, "iss": …}, or {"cancel": "SERVER"}. docs/cli-json.md has the keys.

Exit codes: 0 logged in, 1 failed, 10 still waiting for a person.`,
		Example: `  usher login --missing              all that have no login yet
  usher login --tag work             those of them that have the tag work
  usher login linear
  usher login linear@work
  usher login fly --device           a code on another screen
  usher login notion --paste         open the address anywhere, paste the answer
  usher login notion --no-browser    print the address, wait for the answer
  echo "$ADDRESS" | usher login notion --paste
                                     finish the login that waits
  usher login --missing --courier ssh devbox
                                     log devbox in, with the browser of this machine`,
		ValidArgsFunction: a.completeServers(-1),
		RunE: func(c *cobra.Command, args []string) error {
			o.accounts = args
			mode, many, err := loginMode(o)
			if len(o.tags) > 0 && !many {
				mode, many = bulk.ModeMissing, true
			}
			switch {
			case o.far:
				return a.courierFar(c.Context())
			case err != nil:
				return usagef(c.UseLine(), "%v", err)
			case c.Flags().Changed("courier"):
				return a.courierNear(c.Context(), o, mode)
			case many:
				return a.loginMany(c.Context(), o, mode)
			case len(args) == 0:
				return usagef("usher login SERVER, or usher login --missing", "%s needs a server", c.CommandPath())
			case o.json:
				return a.loginMany(c.Context(), o, bulk.ModeAll)
			}
			return a.login(c.Context(), o)
		},
	}
	a.loginFlags(c, &o)
	return c
}

func (a *factory) loginFlags(c *cobra.Command, o *loginOptions) {
	f := c.Flags()
	f.BoolVar(&o.all, "all", false, "log in to all servers, also where there is a login")
	f.BoolVar(&o.missing, "missing", false, "log in wherever there is no usable login")
	f.BoolVar(&o.expired, "expired", false, "log in again where a login has ended")
	f.BoolVar(&o.device, "device", false, "log in with a code on another screen")
	f.BoolVar(&o.paste, "paste", false, "print the address and read the answer from standard input")
	f.BoolVar(&o.browser, "browser", false, "open a browser on this machine")
	f.BoolVar(&o.noBrowser, "no-browser", false, "print the address and wait for the answer, also pasted")
	f.StringSliceVar(&o.scopes, "scope", nil, "ask for these `scopes` too")
	a.tagFlag(c, &o.tags)
	f.DurationVar(&o.wait, "wait", 5*time.Minute, "how long to wait for a person")
	f.BoolVar(&o.json, "json", false, "print one JSON object per step")
	f.StringArrayVar(&o.courier, "courier", nil, "log in on the machine that this `command…` reaches, with the browser here")
	f.StringVar(&o.farUsher, "far-usher", "usher", "what usher is called on the machine of --courier")
	f.BoolVar(&o.far, "courier-far", false, "be the far end of --courier, on standard input and output")
	_ = f.MarkHidden("courier-far") // it exists
	c.MarkFlagsMutuallyExclusive("device", "paste", "browser", "no-browser")
	c.MarkFlagsMutuallyExclusive("tag", "courier") // the tags would be the other machine's
}

func (a *factory) login(ctx context.Context, o loginOptions) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	failed, waiting := 0, 0
	for _, text := range o.accounts {
		account, err := h.Logins().Account(text)
		var login *auth.Login
		if err == nil {
			login, err = a.loginOne(ctx, h, o, account)
		}
		switch {
		case err == nil:
			a.loginDone(login)
		case errors.Is(err, errStillWaiting):
			waiting++
			a.note("%s still waits for you; to finish it:\n  %s", account, a.finishCommand(ctx, h, account))
		default:
			failed++
			a.report(err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	switch {
	case failed > 0:
		return &silent{exitError}
	case waiting > 0:
		return &silent{exitWaiting}
	}
	return nil
}

// errStillWaiting says that the time was up, or standard input ended, before the person
// was done.
var errStillWaiting = errors.New("still waiting for a person")

// finishCommand is what finishes the login of an account that waits.
func (a *factory) finishCommand(ctx context.Context, h *app.App, account auth.Account) string {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second) // also after Ctrl-C
	defer stop()
	if s, err := h.Auth().Status(ctx, account); err == nil && s.Pending != nil {
		return s.Pending.Command()
	}
	return "usher login " + account.String()
}

func (a *factory) loginOne(ctx context.Context, h *app.App, o loginOptions, account auth.Account) (*auth.Login, error) {
	srv, err := h.Logins().Target(ctx, account)
	if err != nil {
		return nil, err
	}
	wait, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	login, err := a.loginBy(wait, h.Auth(), o, account, srv)
	if err != nil && wait.Err() != nil {
		return nil, errStillWaiting
	}
	return login, err
}

// loginBy takes the way that was asked for, or the first that is possible here.
func (a *factory) loginBy(ctx context.Context, e *auth.Engine, o loginOptions, account auth.Account, srv config.Server) (*auth.Login, error) {
	opt := &auth.LoginOptions{Scopes: o.scopes, Where: "usher login"}
	if login, err := e.Machine(ctx, account, srv, opt); !errors.Is(err, auth.ErrNoFlow) {
		return login, err
	}
	deviceOnly := srv.OAuth != nil && srv.OAuth.Grant == config.GrantDeviceCode
	switch {
	case o.device, deviceOnly && !o.choosesWay():
		return a.loginDevice(ctx, e, account, srv, opt, nil)
	case o.browser:
		return a.loginBrowser(ctx, e, account, srv, opt)
	case o.choosesWay():
		return a.loginPaste(ctx, e, o, account, srv, opt)
	case !a.hasBrowser():
		return a.loginWithoutBrowser(ctx, e, o, account, srv, opt)
	}
	login, err := a.loginBrowser(ctx, e, account, srv, opt)
	if errors.Is(err, auth.ErrNoFlow) {
		return a.loginDevice(ctx, e, account, srv, opt, err)
	}
	return login, err
}

// choosesWay reports whether a flag says how the answer comes back.
func (o loginOptions) choosesWay() bool { return o.device || o.paste || o.browser || o.noBrowser }

// loginWithoutBrowser prefers a code on another screen, which needs no paste, unless
// the server has none or an address was given to the person before.
func (a *factory) loginWithoutBrowser(ctx context.Context, e *auth.Engine, o loginOptions, account auth.Account, srv config.Server, opt *auth.LoginOptions) (*auth.Login, error) {
	if p, err := e.Resume(ctx, account, srv, auth.FlowCode, opt); err == nil && p == nil {
		login, err := a.loginDevice(ctx, e, account, srv, opt, nil)
		var unable *noDeviceError
		if !errors.As(err, &unable) {
			return login, err
		}
	}
	return a.loginPaste(ctx, e, o, account, srv, opt)
}

func (a *factory) loginBrowser(ctx context.Context, e *auth.Engine, account auth.Account, srv config.Server, opt *auth.LoginOptions) (*auth.Login, error) {
	opt.Listen = true
	return e.Browser(ctx, a.interactive(), account, srv, opt, func(p *auth.Pending) {
		a.note("opened your browser for %s. If it did not open, follow this address:\n  %s", account, p.AuthorizeURL)
	})
}

// noDeviceError says that the server gives no code for another screen.
type noDeviceError struct{ error }

func (e *noDeviceError) Unwrap() error { return e.error }

// loginDevice shows a code, that of a login that waits already if there is one, and
// waits until it was entered. Instead, if not nil, is why no other way is possible.
func (a *factory) loginDevice(ctx context.Context, e *auth.Engine, account auth.Account, srv config.Server, opt *auth.LoginOptions, instead error) (*auth.Login, error) {
	p, err := e.Resume(ctx, account, srv, auth.FlowDevice, opt)
	if err == nil && p == nil {
		p, err = e.BeginDevice(ctx, account, srv, opt)
	}
	switch {
	case err != nil && instead != nil && errors.Is(err, auth.ErrNoFlow):
		return nil, instead
	case errors.Is(err, auth.ErrNoFlow), errors.Is(err, auth.ErrRefused), errors.Is(err, auth.ErrNoClient):
		return nil, &noDeviceError{err}
	case err != nil:
		return nil, err
	}
	a.note("%s: enter the code %s at %s", account, p.Device.UserCode, p.Device.VerificationURI)
	a.qr(p.Device)
	return e.PollDevice(ctx, p.State)
}

func (a *factory) loginDone(l *auth.Login) {
	line := fmt.Sprintf("%s is logged in at %s", l.Account, l.Issuer)
	switch {
	case l.Expires.IsZero():
	case l.CanRefresh:
		line += fmt.Sprintf(" for %s, and renews itself", time.Until(l.Expires).Round(time.Minute))
	default:
		line += fmt.Sprintf(" until %s; the server gave no way to renew it", l.Expires.Local().Format(time.DateTime))
	}
	a.note("%s", line)
	if len(l.Missing) > 0 {
		a.note("  not granted: %v", l.Missing)
	}
}
