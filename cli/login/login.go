package login

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
)

type loginOptions struct {
	f                                 *cmdutil.Factory
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

	mode bulk.Mode // which accounts, with many
	many bool      // all at once, not one after the other
	near bool      // --courier was given
}

func newCmdLogin(f *cmdutil.Factory, runF func(context.Context, *loginOptions) error) *cobra.Command {
	o := &loginOptions{f: f}
	if runF == nil {
		runF = loginRun
	}
	c := &cobra.Command{
		Use: "login [SERVER[@ACCOUNT]…]", Short: "Log in to a server, or to all of them at once", GroupID: "use", Args: cmdutil.RangeArgs(0, -1),
		Long: `Log in to a server. On a machine with a browser usher opens the consent page;
elsewhere it prints the URL, and you paste the URL that you are redirected to. Use a
label for several accounts on one server: linear@work.

--all, --missing and --expired log in to every server (or those named) at once: one
local page lists the consent pages, grouped by identity provider, and a progress view
shows the state of each login.

--tag selects the servers with a tag, and implies --missing unless another is given.

--courier forwards the callbacks of logins on a remote machine to the browser here: the
rest of the line (or up to a -- before the names of servers) is the command used to
reach that machine. Only browser-visible data crosses the connection; tokens stay on
the remote machine.

Ctrl-C loses nothing: a pending login can be completed within ten minutes, from any
terminal, with --paste or --no-browser, which continue the pending login of that
account. A script does it in two steps: the first prints the URL and exits with 10,
the second reads the redirect URL from stdin.

With --json a program can drive the logins: usher prints one JSON object per line and
reads answers from stdin, one per line: the redirect URL, or
{"state": …, "code": …, "iss": …}, or {"cancel": "SERVER"}. docs/cli-json.md has the keys.

Exit codes: 0 logged in, 1 failed, 10 still waiting for the user.`,
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
		ValidArgsFunction: cmdutil.CompleteServers(f, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.accounts = args
			mode, many, err := loginMode(o)
			if len(o.tags) > 0 && !many {
				mode, many = bulk.ModeMissing, true
			}
			o.near = c.Flags().Changed("courier")
			switch {
			case o.far:
			case err != nil:
				return cmdutil.Usagef(c.UseLine(), "%v", err)
			case o.near, many:
			case len(args) == 0:
				return cmdutil.Usagef("usher login SERVER, or usher login --missing", "%s needs a server", c.CommandPath())
			case o.json:
				mode, many = bulk.ModeAll, true
			}
			o.mode, o.many = mode, many
			return runF(c.Context(), o)
		},
	}
	loginFlags(f, c, o)
	return c
}

func loginFlags(f *cmdutil.Factory, c *cobra.Command, o *loginOptions) {
	flags := c.Flags()
	flags.BoolVar(&o.all, "all", false, "log in to all servers, including those with a login")
	flags.BoolVar(&o.missing, "missing", false, "log in where there is no valid login")
	flags.BoolVar(&o.expired, "expired", false, "log in again where the login has expired")
	flags.BoolVar(&o.device, "device", false, "log in with a code on another device")
	flags.BoolVar(&o.paste, "paste", false, "print the URL and read the redirect URL from stdin")
	flags.BoolVar(&o.browser, "browser", false, "open a browser on this machine")
	flags.BoolVar(&o.noBrowser, "no-browser", false, "print the URL and wait for the callback or a pasted redirect URL")
	flags.StringSliceVar(&o.scopes, "scope", nil, "also request these `scopes`")
	cmdutil.TagFlag(f, c, &o.tags)
	flags.DurationVar(&o.wait, "wait", 5*time.Minute, "how long to wait for the user")
	flags.BoolVar(&o.json, "json", false, "print one JSON object per step")
	flags.StringArrayVar(&o.courier, "courier", nil, "log in on the machine that this `command…` reaches, with the browser here")
	flags.StringVar(&o.farUsher, "far-usher", "usher", "path to usher on the remote machine")
	flags.BoolVar(&o.far, "courier-far", false, "be the far end of --courier, on standard input and output")
	_ = flags.MarkHidden("courier-far") // it exists
	c.MarkFlagsMutuallyExclusive("device", "paste", "browser", "no-browser")
	c.MarkFlagsMutuallyExclusive("tag", "courier") // the tags would be the other machine's
}

func loginRun(ctx context.Context, o *loginOptions) error {
	switch {
	case o.far:
		return courierFar(ctx, o.f)
	case o.near:
		return courierNear(ctx, o.f, o, o.mode)
	case o.many:
		return loginMany(ctx, o.f, o, o.mode)
	}
	return loginEach(ctx, o.f, o)
}

// loginEach logs the named accounts in, one after the other.
func loginEach(ctx context.Context, f *cmdutil.Factory, o *loginOptions) error {
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	failed, waiting := 0, 0
	for _, text := range o.accounts {
		account, err := h.Logins().Account(text)
		var login *auth.Login
		if err == nil {
			login, err = loginOne(ctx, f, h, o, account)
		}
		switch {
		case err == nil:
			loginDone(f, login)
		case errors.Is(err, errStillWaiting):
			waiting++
			f.Note("%s still waits for you; to finish it:\n  %s", account, finishCommand(ctx, f, h, account))
		default:
			failed++
			f.Report(err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	switch {
	case failed > 0:
		return &cmdutil.SilentError{Code: cmdutil.ExitError}
	case waiting > 0:
		return &cmdutil.SilentError{Code: cmdutil.ExitWaiting}
	}
	return nil
}

// errStillWaiting says that the time was up, or standard input ended, before the person
// was done.
var errStillWaiting = errors.New("still waiting for the user")

// finishCommand is what finishes the login of an account that waits.
func finishCommand(ctx context.Context, f *cmdutil.Factory, h *app.App, account auth.Account) string {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second) // also after Ctrl-C
	defer stop()
	if s, err := h.Auth().Status(ctx, account); err == nil && s.Pending != nil {
		return s.Pending.Command()
	}
	return "usher login " + account.String()
}

func loginOne(ctx context.Context, f *cmdutil.Factory, h *app.App, o *loginOptions, account auth.Account) (*auth.Login, error) {
	srv, err := h.Logins().Target(ctx, account)
	if err != nil {
		return nil, err
	}
	wait, stop := context.WithTimeout(ctx, o.wait)
	defer stop()
	login, err := loginBy(wait, f, h.Auth(), o, account, srv)
	if err != nil && wait.Err() != nil {
		return nil, errStillWaiting
	}
	return login, err
}

// loginBy takes the way that was asked for, or the first that is possible here.
func loginBy(ctx context.Context, f *cmdutil.Factory, e *auth.Engine, o *loginOptions, account auth.Account, srv config.Server) (*auth.Login, error) {
	opt := &auth.LoginOptions{Scopes: o.scopes, Where: "usher login"}
	if login, err := e.Machine(ctx, account, srv, opt); !errors.Is(err, auth.ErrNoFlow) {
		return login, err
	}
	deviceOnly := srv.OAuth != nil && srv.OAuth.Grant == config.GrantDeviceCode
	switch {
	case o.device, deviceOnly && !o.choosesWay():
		return loginDevice(ctx, f, e, account, srv, opt, nil)
	case o.browser:
		return loginBrowser(ctx, f, e, account, srv, opt)
	case o.choosesWay():
		return loginPaste(ctx, f, e, o, account, srv, opt)
	case !cmdutil.HasBrowser(f):
		return loginWithoutBrowser(ctx, f, e, o, account, srv, opt)
	}
	login, err := loginBrowser(ctx, f, e, account, srv, opt)
	if errors.Is(err, auth.ErrNoFlow) {
		return loginDevice(ctx, f, e, account, srv, opt, err)
	}
	return login, err
}

// choosesWay reports whether a flag says how the answer comes back.
func (o *loginOptions) choosesWay() bool { return o.device || o.paste || o.browser || o.noBrowser }

// loginWithoutBrowser prefers a code on another screen, which needs no paste, unless
// the server has none or an address was given to the person before.
func loginWithoutBrowser(ctx context.Context, f *cmdutil.Factory, e *auth.Engine, o *loginOptions, account auth.Account, srv config.Server, opt *auth.LoginOptions) (*auth.Login, error) {
	if p, err := e.Resume(ctx, account, srv, auth.FlowCode, opt); err == nil && p == nil {
		login, err := loginDevice(ctx, f, e, account, srv, opt, nil)
		var unable *noDeviceError
		if !errors.As(err, &unable) {
			return login, err
		}
	}
	return loginPaste(ctx, f, e, o, account, srv, opt)
}

func loginBrowser(ctx context.Context, f *cmdutil.Factory, e *auth.Engine, account auth.Account, srv config.Server, opt *auth.LoginOptions) (*auth.Login, error) {
	opt.Listen = true
	return e.Browser(ctx, cmdutil.Interactive(f), account, srv, opt, func(p *auth.Pending) {
		f.Note("opened your browser for %s. If it did not open, open this URL:\n  %s", account, p.AuthorizeURL)
	})
}

// noDeviceError says that the server gives no code for another screen.
type noDeviceError struct{ error }

func (e *noDeviceError) Unwrap() error { return e.error }

// loginDevice shows a code, that of a login that waits already if there is one, and
// waits until it was entered. Instead, if not nil, is why no other way is possible.
func loginDevice(ctx context.Context, f *cmdutil.Factory, e *auth.Engine, account auth.Account, srv config.Server, opt *auth.LoginOptions, instead error) (*auth.Login, error) {
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
	f.Note("%s: enter the code %s at %s", account, p.Device.UserCode, p.Device.VerificationURI)
	showQR(f, p.Device)
	return e.PollDevice(ctx, p.State)
}

func loginDone(f *cmdutil.Factory, l *auth.Login) {
	line := fmt.Sprintf("%s is logged in at %s", l.Account, l.Issuer)
	switch {
	case l.Expires.IsZero():
	case l.CanRefresh:
		line += fmt.Sprintf(" for %s, and renews itself", time.Until(l.Expires).Round(time.Minute))
	default:
		line += fmt.Sprintf(" until %s; the server gave no way to renew it", l.Expires.Local().Format(time.DateTime))
	}
	f.Note("%s", line)
	if len(l.Missing) > 0 {
		f.Note("  not granted: %v", l.Missing)
	}
}
