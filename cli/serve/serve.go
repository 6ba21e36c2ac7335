package serve

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/logins"
	"github.com/usher-mcp/usher/surface"
)

type serveOptions struct {
	f                                             *cmdutil.Factory
	http, only, profile, surface, auth, publicURL string
	metrics, store, peerURL                       string
	stdio, noConsole                              bool
}

func newCmdServe(f *cmdutil.Factory, runF func(context.Context, *serveOptions) error) *cobra.Command {
	o := &serveOptions{f: f}
	if runF == nil {
		runF = serveRun
	}
	c := &cobra.Command{
		Use: "serve", Short: "Run the gateway (stdio or HTTP)", GroupID: "use", Args: cmdutil.ExactArgs(0),
		Long: `Serve all servers to agents as one MCP server: over stdio (one line in a client's
configuration), or over HTTP with --http.

Over HTTP: /mcp is the surface chosen for this gateway, /direct/mcp has all tools
under their own names, /meta/mcp has one small tool that searches and calls all others,
/servers/NAME/mcp passes one server through unchanged, /profiles/NAME/mcp is a profile.
Without --auth the gateway listens on loopback addresses only.

On a shared machine, every user can reach a loopback address, and with it your logins:
use --auth token there, or --http unix:PATH. Only you and root can connect to that
socket; its directory must be yours and closed to others (mode 0700). Clients send the
Host header localhost.

A web console is at /. It opens with a one-time link: usher prints one at the start on
a terminal, and usher console prints another.

When a configuration file changes, usher reloads it, immediately on SIGHUP or with
usher reload. It reconnects only servers whose definition changed, and notifies agents
of changed lists. An invalid file is ignored: usher keeps its current configuration.


Several replicas may serve behind one URL, and any of them can take any request: give
all of them the same --store postgres://… and the same encryption key.`,
		Example: `  usher serve                                   for an agent that starts it
  usher serve --only github                     one server, untouched
  usher serve --http 127.0.0.1:7331             for many agents on this machine
  usher serve --http unix:$XDG_RUNTIME_DIR/usher.sock
                                                for your programs only
  usher serve --http 0.0.0.0:7331 --auth token  for others, with: usher token mint
  usher serve --http 0.0.0.0:7331 --auth token --store '${env:DATABASE_URL}'
                                                one of several behind one address`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	flags := c.Flags()
	flags.StringVar(&o.http, "http", "", "listen on this `address`: 127.0.0.1:7331, or unix:PATH for a socket that only you reach")
	flags.BoolVar(&o.stdio, "stdio", false, "also serve stdio, in addition to --http")
	flags.StringVar(&o.only, "only", "", "pass only this `server` through, unchanged (stdio)")
	flags.StringVar(&o.profile, "profile", "", "serve this `profile` (stdio)")
	flags.StringVar(&o.surface, "surface", "", "auto, meta or direct")
	flags.StringVar(&o.auth, "auth", "", "client authentication: none, token or oidc")
	flags.StringVar(&o.publicURL, "public-url", "", "URL at which agents reach it from outside, such as https://usher.example.com")
	flags.BoolVar(&o.noConsole, "no-console", false, "serve no web console at /")
	flags.StringVar(&o.metrics, "metrics", "", "serve /metrics, /healthz and /readyz on this `address`, unauthenticated")
	flags.StringVar(&o.peerURL, "peer-url", "", "URL at which other replicas reach this one (default: where it listens)")
	flags.StringVar(&o.store, "store", "", "keep everything in this `store`: a file, or postgres://… that several replicas share")
	c.MarkFlagsMutuallyExclusive("only", "profile")
	return c
}

func serveRun(ctx context.Context, o *serveOptions) error {
	f := o.f
	if !slices.Contains([]string{"", "auto", "meta", "direct"}, o.surface) {
		return cmdutil.Usagef("--surface auto, meta or direct", "there is no surface %q", o.surface)
	}
	if !slices.Contains([]string{"", "none", "token", "oidc"}, o.auth) {
		return cmdutil.Usagef("--auth none, token or oidc", "unknown auth mode %q", o.auth)
	}
	f.Overrides = map[string]string{}
	for path, flag := range map[string]string{
		"gateway.http": o.http, "gateway.surface": o.surface, "gateway.auth.mode": o.auth, "gateway.publicUrl": o.publicURL,
		"gateway.peerUrl": o.peerURL, "telemetry.listen": o.metrics, "store": o.store,
	} {
		if flag != "" {
			f.Overrides[path] = flag
		}
	}
	cfg, err := f.Config()
	if err != nil {
		return err
	}
	if cfg.Usher.Problem != nil {
		return fmt.Errorf("the settings cannot be used, and rules may be missing: %w", cfg.Usher.Problem)
	}
	g := cfg.Usher.Gateway
	guarded := []string{"gateway.http"}
	if g.HTTP != "" {
		guarded = append(guarded, "gateway.auth") // on stdio no client authenticates
	}
	if err := cfg.Usher.Mistaken(guarded...); err != nil {
		return fmt.Errorf("the gateway cannot be served as it is meant: %w", err)
	}
	cmdutil.WarnOfPassword(f, o.store)
	var t *telemetry
	if g.HTTP == "" {
		f.ServeLog = servingLogger(f, cfg.Usher.Telemetry)
	} else {
		if t, err = newTelemetry(ctx, f, cfg); err != nil {
			return err
		}
		f.Observer = t
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	var who authn.Authenticator
	if g.HTTP != "" {
		if who, err = h.Frontend().Authenticator(g.Auth, g.PublicURL); err != nil {
			return cmdutil.Usagef("usher serve --help", "%v", err)
		}
	}
	room := keepRoom(func() int { return h.Stats().Host.Open })
	defer room.stop()
	return whileSteered(f, h, func() error {
		defer followFiles(ctx, f, h)()
		if g.HTTP == "" {
			return serveStdio(ctx, f, h, o)
		}
		return serveHTTP(ctx, f, h, o, g.HTTP, who, room, t)
	})
}

// followFiles keeps a served host in step with its files, and SIGHUP has them read
// at once, until the result is called.
func followFiles(ctx context.Context, f *cmdutil.Factory, h *app.App) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	reread := func() {
		r, err := h.ReloadConfig(ctx)
		rereadSaid(f, r, err)
	}
	f.OnHangup.Store(&reread)
	var wg sync.WaitGroup
	wg.Go(func() { h.WatchConfig(ctx, func(r app.ConfigChange, err error) { rereadSaid(f, r, err) }) })
	return func() {
		f.OnHangup.Store(nil)
		end()
		wg.Wait()
	}
}

// rereadSaid tells what a new look at the files has changed.
func rereadSaid(f *cmdutil.Factory, r app.ConfigChange, err error) {
	if err != nil {
		f.Report(err)
		return
	}
	for _, n := range r.Notes {
		f.Note("%s", n)
	}
	if len(r.Changed) > 0 {
		f.Note("the configuration has changed: %s", strings.Join(r.Changed, ", "))
	}
}

func serveStdio(ctx context.Context, f *cmdutil.Factory, h *app.App, o *serveOptions) error {
	view, err := chosenView(ctx, h, o)
	if err != nil {
		return err
	}
	g := h.Frontend().Gateway(nil)
	defer g.Close()
	return g.ServeStdio(ctx, view, f.IO.In, f.IO.Out)
}

func chosenView(ctx context.Context, h *app.App, o *serveOptions) (surface.View, error) {
	switch {
	case o.only != "":
		return h.Frontend().Surface().Server(ctx, surface.Agent{}, o.only)
	case o.profile != "":
		return h.Frontend().Surface().Profile(o.profile)
	}
	view, _ := h.Frontend().Surface().Auto()
	return view, nil
}

func serveHTTP(ctx context.Context, f *cmdutil.Factory, h *app.App, o *serveOptions, addr string, who authn.Authenticator, room *room, t *telemetry) error {
	l, err := listenHTTP(ctx, addr, who != nil)
	if err != nil {
		return err
	}
	g, err := newGateway(ctx, f, h, l.Addr(), who)
	if err != nil {
		_ = l.Close() // nobody has been told of it yet
		return err
	}
	t.metrics.watch(h, g)
	t.start()
	stop, err := serveTelemetry(ctx, f, h.Config().Usher.Telemetry.Listen, g, t.metrics)
	if err != nil {
		_ = l.Close() // nobody has been told of it yet
		return err
	}
	defer stop()
	noteServing(f, l.Addr())
	mux := GatewayMux(h, g)
	mux.Handle("/metrics", g.Guard(g.Operators(t.metrics.handler())))
	if !o.noConsole {
		defer serveConsole(ctx, f, h, g, l.Addr(), mux)()
	}
	if o.stdio {
		go func() {
			view, err := chosenView(ctx, h, o)
			if err == nil {
				err = g.ServeStdio(ctx, view, f.IO.In, f.IO.Out)
			}
			if err != nil && ctx.Err() == nil {
				f.Report(err)
			}
		}()
	}
	return g.Serve(ctx, &roomListener{l, room}, mux)
}

// announceConsole prints a link to a person at a terminal. Logs, and an agent that
// starts usher, do not get one: its holder can do in the console what a person can.
func announceConsole(f *cmdutil.Factory, c *console.Console) {
	if f.IO.ErrTTY && f.MayLoosen() == nil {
		f.Note("console %s   (works once; another: usher console)", c.Link())
		return
	}
	f.Note("console at /   (a link to it: usher console)")
}

// GatewayMux serves a gateway, and takes the answers of consent pages beside it.
func GatewayMux(h *app.App, g *gateway.Gateway) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/", g.Handler())
	mux.HandleFunc(logins.CallbackPath, func(w http.ResponseWriter, r *http.Request) {
		if !g.Ours(r) { // Origin says nothing here: a provider's page leads to it
			http.Error(w, "not served here", http.StatusMisdirectedRequest)
			return
		}
		h.Frontend().CallbackHandler().ServeHTTP(w, r)
	})
	return mux
}
