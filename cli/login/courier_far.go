package login

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
	"github.com/usher-mcp/usher/auth/forward"
	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/app"
)

// courierFar is the end of a courier on the machine whose logins they are. Standard
// output carries the talk and nothing else.
func courierFar(ctx context.Context, f *cmdutil.Factory) error {
	// Without this a line that breaks would end the process in the middle of trading
	// a code.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	h, err := f.Open(ctx)
	if err != nil {
		forward.Refuse(f.IO.Out, err)
		return &cmdutil.SilentError{Code: cmdutil.ExitError} // the other side tells the person
	}
	far := forward.Remote{
		Hello: forward.Hello{Usher: cmdutil.Version().Number, Host: hostName(), Redirects: courierRedirects(ctx, h)},
		Begin: func(ctx context.Context, o forward.Order) (*bulk.Driver, []bulk.Target, error) {
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
	err = far.Serve(ctx, f.IO.In, f.IO.Out)
	switch {
	case errors.Is(err, forward.ErrDisconnected):
		return &cmdutil.SilentError{Code: cmdutil.ExitWaiting}
	case err != nil:
		return &cmdutil.SilentError{Code: cmdutil.ExitError} // the other side was told
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
