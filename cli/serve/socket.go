package serve

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/control"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/internal/app"
)

// listenHTTP listens on the address of --http: HOST:PORT, or unix:PATH for a socket
// that only the same user can connect to.
func listenHTTP(ctx context.Context, addr string, authenticated bool) (net.Listener, error) {
	if err := gateway.CheckListen(addr, authenticated); err != nil {
		return nil, cmdutil.WithHint(err, "usher serve --http %s --auth token, then: usher token mint", addr)
	}
	path, socket := gateway.SocketPath(addr)
	if !socket {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, cmdutil.WithHint(err, "choose another address with --http")
		}
		return l, nil
	}
	l, err := control.Listen(path)
	switch {
	case errors.Is(err, control.ErrInUse):
		return nil, cmdutil.WithHint(err, "stop the other one, or choose another path with --http unix:PATH")
	case errors.Is(err, errors.ErrUnsupported):
		return nil, cmdutil.WithHint(err, "usher serve --http 127.0.0.1:7331 --auth token")
	case err != nil:
		return nil, cmdutil.WithHint(err, "choose a path in a directory of your own with --http unix:PATH")
	}
	return l, nil
}

// isSocket reports whether an address is that of a Unix socket.
func isSocket(addr net.Addr) bool { return addr.Network() == "unix" }

// noteServing says where clients reach the gateway.
func noteServing(f *cmdutil.Factory, addr net.Addr) {
	if isSocket(addr) {
		f.Note("serving http://localhost/mcp on the socket %s, for this user only", addr)
		return
	}
	f.Note("serving http://%s/mcp", addr)
}

// serveConsole puts the console beside the gateway, where a browser can reach it.
func serveConsole(ctx context.Context, f *cmdutil.Factory, h *app.App, g *gateway.Gateway, addr net.Addr, mux *http.ServeMux) (stop func()) {
	if isSocket(addr) && h.Config().Usher.Gateway.PublicURL == "" {
		f.Note("no console: a browser cannot open a socket (behind a proxy, set --public-url)")
		return func() {}
	}
	c := MountConsole(h, g, addr, mux)
	drained := context.AfterFunc(ctx, c.Drain)
	announceConsole(f, c)
	return func() {
		drained()
		c.Close()
	}
}
