package cli

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/auth/courier"
	"github.com/usher-mcp/usher/internal/app"
)

// courierFar is the end of a courier on the machine whose logins they are. Standard
// output carries the talk and nothing else.
func (a *factory) courierFar(ctx context.Context) error {
	// Without this a line that breaks would end the process in the middle of trading
	// a code.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	h, err := a.open(ctx)
	if err != nil {
		courier.Refuse(a.io.Out, err)
		return &silent{exitError} // the other side tells the person
	}
	far := courier.Far{
		Hello: courier.Hello{Usher: Version().Number, Host: hostName(), Redirects: courierRedirects(ctx, h)},
		Begin: func(ctx context.Context, o courier.Order) (*bulk.Driver, []bulk.Target, error) {
			targets, err := h.Logins().Targets(ctx, o.Accounts)
			if err != nil {
				return nil, nil, err
			}
			engine := bulk.NewEngine(h.Auth(), &bulk.EngineOptions{Where: "usher login --courier", Scopes: o.Scopes})
			return bulk.New(engine, &bulk.Options{Bulk: h.Config().Usher.Bulk}), targets, nil
		},
		Connected: func(ctx context.Context, account auth.Account) {
			_ = h.Logins().Reconnect(ctx, account) // the next call connects anyway
		},
	}
	err = far.Serve(ctx, a.io.In, a.io.Out)
	switch {
	case errors.Is(err, courier.ErrLeft):
		return &silent{exitWaiting}
	case err != nil:
		return &silent{exitError} // the other side was told
	}
	return nil
}

// courierRedirects are the addresses at which answers should come back: the one that
// this machine uses itself, and those that servers are configured with.
func courierRedirects(ctx context.Context, h *app.App) []string {
	var out []string
	main, err := h.Auth().LoopbackAddress(ctx)
	if err != nil {
		main = "" // any will do
	}
	out = append(out, main)
	for _, srv := range h.Config().Servers {
		if srv.OAuth != nil && !srv.Disabled && onLoopback(srv.OAuth.RedirectURI) {
			out = append(out, srv.OAuth.RedirectURI)
		}
	}
	return out
}

func onLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// hostName is what this machine calls itself.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "the far machine"
	}
	return name
}
