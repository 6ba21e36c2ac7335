package auth

import (
	"context"
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
)

// Interactive is the permission to open a browser. Only a surface that acts on an
// explicit command or click of a person makes one; nothing that runs by itself, such
// as a probe, a refresh or a list, has a way to get hold of it. The zero value opens
// nothing.
type Interactive struct {
	open func(ctx context.Context, url string) error
}

// NewInteractive wraps what opens a page. Open must pass the address on as one
// argument, never through a shell; it is an https address, or http on loopback, and
// was rebuilt from its parts.
func NewInteractive(open func(ctx context.Context, url string) error) Interactive {
	return Interactive{open: open}
}

// Show opens the page of a pending login.
func (i Interactive) Show(ctx context.Context, p *Pending) error {
	address := p.AuthorizeURL
	if address == "" && p.Device != nil {
		address = p.Device.VerificationURI
	}
	u, err := oauth.PageURL("the login page", address)
	if err != nil {
		return err
	}
	if i.open == nil {
		return errors.New("there is no browser to open")
	}
	if err := i.open(ctx, u.String()); err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	return nil
}

// Browser logs an account in: it listens on loopback, opens the consent page and
// waits for the answer, which may also come through another process or a paste.
// Began, if not nil, hears of the login before the browser opens, so that its
// address can be shown. A browser that does not open is not the end: the person may
// follow the address.
func (e *Engine) Browser(ctx context.Context, i Interactive, a Account, srv config.Server, options *LoginOptions, began func(*Pending)) (*Login, error) {
	var opt LoginOptions
	if options != nil {
		opt = *options
	}
	opt.Listen = true
	p, err := e.Begin(ctx, a, srv, &opt)
	if err != nil {
		return nil, err
	}
	if began != nil {
		began(p)
	}
	if err := i.Show(ctx, p); err != nil {
		e.env.Log.Warn("the login page could not be opened; open it by hand", "account", a.String(), "error", err)
	}
	return e.Wait(ctx, p.State)
}
