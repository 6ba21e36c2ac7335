package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/control"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/internal/status"
)

type consoleOptions struct {
	pid        int
	open, json bool
}

func newCmdConsole(a *factory) *cobra.Command {
	var o consoleOptions
	c := &cobra.Command{
		Use: "console", Short: "Print a link to the web console of a running usher", GroupID: "use", Args: exactly(0),
		Long: `Print a link to the web console of every usher that serves one (usher serve --http).
A link works once and for ten minutes; the browser that used it stays in until it
is closed, or has not been used for twelve hours.`,
		Example: `  usher console
  usher console --open              in a browser
  usher console --pid 4711`,
		RunE: func(c *cobra.Command, _ []string) error { return a.console(c.Context(), o) },
	}
	f := c.Flags()
	f.IntVar(&o.pid, "pid", 0, "only the usher with this process `id`")
	f.BoolVar(&o.open, "open", false, "open it in a browser")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func (a *factory) console(ctx context.Context, o consoleOptions) error {
	peers, err := a.running(ctx, o.pid)
	if err != nil {
		return err
	}
	links := []status.ConsoleLink{}
	for _, p := range peers {
		link, err := a.askLink(ctx, p)
		switch {
		case errors.Is(err, control.ErrUnknownServer): // it has none
		case err != nil:
			a.note("%v", err)
		default:
			links = append(links, link)
		}
	}
	switch {
	case o.json:
		return a.printJSON(map[string]any{"consoles": links})
	case len(links) == 0:
		return withHint(errors.New("no running usher serves a console"), "usher serve --http 127.0.0.1:7331")
	}
	for _, l := range links {
		fmt.Fprintln(a.io.Out, l.Link)
		if !o.open {
			continue
		}
		if err := OpenBrowser(ctx, a.io.env("BROWSER"), l.Link); err != nil {
			a.note("  it did not open by itself: %v", err)
		}
	}
	return nil
}

func (a *factory) askLink(ctx context.Context, p control.Peer) (status.ConsoleLink, error) {
	ctx, stop := context.WithTimeout(ctx, answerTimeout)
	defer stop()
	var link status.ConsoleLink
	resp, err := p.DoWith(ctx, http.MethodPost, "/console", a.proof())
	if err != nil {
		return link, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&link); err != nil {
		return link, fmt.Errorf("read the answer of usher with pid %d: %w", p.PID, err)
	}
	return link, nil
}

// proof is what shows a running usher that a person asks.
func (a *factory) proof() http.Header {
	header := http.Header{}
	if a.terminal() {
		header.Set(control.TerminalHeader, "1")
	}
	if token := a.io.env(person.TokenVariable); token != "" {
		header.Set(control.TokenHeader, token)
	}
	return header
}

// mountConsole puts the console of h at /. Close it before h.
func mountConsole(h *app.App, g *gateway.Gateway, addr net.Addr, mux *http.ServeMux) *console.Console {
	base := strings.TrimRight(h.Config().Usher.Gateway.PublicURL, "/")
	if base == "" {
		base = "http://" + reachable(addr)
	}
	c := h.Frontend().Console(&console.Options{Base: base, Ours: g.Ours})
	mux.Handle("/{$}", c)
	mux.Handle("/console/", c)
	return c
}

// reachable is an address that a browser on this machine can open: one that listens
// everywhere also listens on loopback.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return addr.String()
}
