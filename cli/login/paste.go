package login

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"rsc.io/qr"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

// loginPaste prints the address, that of a login that waits already if there is one,
// and takes the answer however it comes: pasted here, at the loopback address where the
// person forwards it, or through another usher. A paste that does not fit leaves all
// logins as they were.
func loginPaste(ctx context.Context, f *cmdutil.Factory, e *auth.Engine, o *loginOptions, account auth.Account, srv config.Server, opt *auth.LoginOptions) (*auth.Login, error) {
	opt.Listen = !o.paste
	p, err := e.Resume(ctx, account, srv, auth.FlowCode, opt)
	if err == nil && p != nil {
		f.Note("a login to %s waits since %s", account, p.Created.Local().Format(time.TimeOnly))
	} else {
		p, err = e.Begin(ctx, account, srv, opt)
	}
	if err != nil {
		return nil, err
	}
	f.Note("open this URL in any browser and log in to %s:\n  %s\nthen paste the URL you are redirected to (the page may fail to load; that is expected)", account, p.AuthorizeURL)
	waitCtx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan loginEnd, 1)
	go func() {
		login, err := e.Wait(waitCtx, p.State)
		ended <- loginEnd{login, err}
	}()
	lines, refused := pastes(waitCtx, f), false
	for {
		if f.IO.InTTY {
			fmt.Fprint(f.IO.Err, "paste> ")
		}
		select {
		case end := <-ended:
			return end.login, end.err
		case line, more := <-lines:
			if !more && o.paste {
				return noMorePastes(ctx, f, e, p, refused)
			}
			if !more {
				lines = nil // no more pastes; the answer may still come another way
				continue
			}
			login, err := pasteTo(ctx, e, p, line)
			if err == nil || !mayPasteAgain(err) {
				return login, err
			}
			refused = true
			f.Report(err)
		}
	}
}

// pasteTo finishes a login of the account with a pasted answer: the one that is shown,
// or another that waits, if the answer names it.
func pasteTo(ctx context.Context, e *auth.Engine, p *auth.Pending, line string) (*auth.Login, error) {
	got, err := oauth.ParsePaste(line)
	if err != nil {
		return nil, err
	}
	state := ""
	if got.State == "" {
		state = p.State // a bare code
	}
	return e.PasteFor(ctx, state, line, func(of auth.Account) bool { return of == p.Account })
}

// noMorePastes says what became of a login when standard input has ended.
func noMorePastes(ctx context.Context, f *cmdutil.Factory, e *auth.Engine, p *auth.Pending, refused bool) (*auth.Login, error) {
	if login, err := e.Obtained(ctx, p); err == nil && login != nil {
		return login, nil // another process was faster
	}
	if refused {
		return nil, cmdutil.WithHint(fmt.Errorf("%s: what was pasted is not the answer to a login that waits", p.Account), "usher login %s --paste", p.Account)
	}
	return nil, errStillWaiting
}

// mayPasteAgain reports whether the login is as it was before the paste, or ends by
// another answer than it.
func mayPasteAgain(err error) bool {
	for _, still := range []error{auth.ErrBadPaste, auth.ErrUnknownState, auth.ErrBeingCompleted, auth.ErrIssuer, auth.ErrUnavailable} {
		if errors.Is(err, still) {
			return true
		}
	}
	return false
}

// loginEnd is how a login ended.
type loginEnd struct {
	login *auth.Login
	err   error
}

// pastes yields the lines of standard input that are not empty. The reader may
// outlive the command: a terminal cannot be interrupted.
func pastes(ctx context.Context, f *cmdutil.Factory) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		in := bufio.NewScanner(io.LimitReader(f.IO.In, 16*cmdutil.MaxPaste))
		in.Buffer(nil, cmdutil.MaxPaste)
		for in.Scan() {
			line := strings.TrimSpace(in.Text())
			if line == "" {
				continue
			}
			select {
			case out <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// showQR draws the page of a device login for a phone, on a terminal only. The code is
// shown beside it, so that a person can compare.
func showQR(f *cmdutil.Factory, d *auth.Device) {
	if !f.IO.ErrTTY || d.Complete == "" {
		return
	}
	code, err := qr.Encode(d.Complete, qr.L)
	if err != nil {
		return // the address stands above
	}
	var b strings.Builder
	for y := -1; y <= code.Size; y += 2 {
		b.WriteString("  ")
		for x := -1; x <= code.Size; x++ {
			top, bottom := code.Black(x, y), code.Black(x, y+1)
			switch {
			case top && bottom:
				b.WriteRune(' ')
			case top:
				b.WriteRune('▄')
			case bottom:
				b.WriteRune('▀')
			default:
				b.WriteRune('█')
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprint(f.IO.Err, b.String())
}
