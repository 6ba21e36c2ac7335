package serve

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

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/control"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/person"
	"github.com/usher-mcp/usher/status"
)

type consoleOptions struct {
	f          *cmdutil.Factory
	pid        int
	open, json bool
}

func newCmdConsole(f *cmdutil.Factory, runF func(context.Context, *consoleOptions) error) *cobra.Command {
	o := &consoleOptions{f: f}
	if runF == nil {
		runF = consoleRun
	}
	c := &cobra.Command{
		Use: "console", Short: "Print a link to the web console", GroupID: "use", Args: cmdutil.ExactArgs(0),
		Long: `Print a one-time link to the web console of every running gateway (usher serve
--http). A link expires after ten minutes; the browser that used it stays logged in
until it is closed, or has been idle for twelve hours.`,
		Example: `  usher console
  usher console --open              in a browser
  usher console --pid 4711`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	flags := c.Flags()
	flags.IntVar(&o.pid, "pid", 0, "only the usher process with this `id`")
	flags.BoolVar(&o.open, "open", false, "open it in a browser")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func consoleRun(ctx context.Context, o *consoleOptions) error {
	f := o.f
	peers, err := cmdutil.Running(ctx, f, o.pid)
	if err != nil {
		return err
	}
	links := []status.ConsoleLink{}
	for _, p := range peers {
		link, err := askLink(ctx, f, p)
		switch {
		case errors.Is(err, control.ErrUnknownServer): // it has none
		case err != nil:
			f.Note("%v", err)
		default:
			links = append(links, link)
		}
	}
	switch {
	case o.json:
		return f.PrintJSON(map[string]any{"consoles": links})
	case len(links) == 0:
		return cmdutil.WithHint(errors.New("no usher process serves a console"), "usher serve --http 127.0.0.1:7331")
	}
	for _, l := range links {
		fmt.Fprintln(f.IO.Out, l.Link)
		if !o.open {
			continue
		}
		if err := cmdutil.OpenBrowser(ctx, f.IO.Env("BROWSER"), l.Link); err != nil {
			f.Note("  it did not open by itself: %v", err)
		}
	}
	return nil
}

func askLink(ctx context.Context, f *cmdutil.Factory, p control.Peer) (status.ConsoleLink, error) {
	ctx, stop := context.WithTimeout(ctx, cmdutil.AnswerTimeout)
	defer stop()
	var link status.ConsoleLink
	resp, err := p.DoWith(ctx, http.MethodPost, "/console", proof(f))
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
func proof(f *cmdutil.Factory) http.Header {
	header := http.Header{}
	if f.Terminal() {
		header.Set(control.TerminalHeader, "1")
	}
	if token := f.IO.Env(person.TokenVariable); token != "" {
		header.Set(control.TokenHeader, token)
	}
	return header
}

// MountConsole puts the console of h at /. Close it before h.
func MountConsole(h *app.App, g *gateway.Gateway, addr net.Addr, mux *http.ServeMux) *console.Console {
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
