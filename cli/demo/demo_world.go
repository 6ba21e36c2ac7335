package demo

import (
	"context"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/cli/serve"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// demoWorld is six servers, two authorization servers, and a host with a gateway
// and a console in front of them. All of it is this process and children of it.
type demoWorld struct {
	host    *app.App
	console *console.Console
	tickets *fake.Server
	// signIn says at which authorization server one logs in.
	signIn map[string]*demoSignIn

	stops []func() // what ends it, in the order of the making
}

// demoSignIn is an authorization server of the demo.
type demoSignIn struct {
	name string
	*fake.AuthServer
}

// demoAddress is where the console of the demo is, if nobody else is there.
const demoAddress = "127.0.0.1:7331"

func newDemoWorld(ctx context.Context, f *cmdutil.Factory) (w *demoWorld, err error) {
	w = &demoWorld{signIn: map[string]*demoSignIn{}}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	exe, err := os.Executable()
	if err != nil {
		return w, err
	}
	home, err := os.MkdirTemp("", "usher-demo-")
	if err != nil {
		return w, err
	}
	w.stops = append(w.stops, func() { _ = os.RemoveAll(home) }) // the system cleans up what is left
	cfg := &config.Config{Usher: config.DefaultSettings()}
	cfg.Usher.Budgets.Total.Calls, cfg.Usher.Budgets.Total.Window = 1000, time.Hour
	for _, name := range []string{"files", "flaky"} {
		cfg.Servers = append(cfg.Servers, config.Server{
			Name: name, Transport: config.TransportStdio, Command: exe, Args: []string{"fake", "--name", name, "--demo", name}, KeepAlive: time.Hour,
		})
	}
	accounts := &demoSignIn{"accounts.demo", nil}
	office := &demoSignIn{"office.demo", nil}
	for _, s := range []*demoSignIn{accounts, office} {
		s.AuthServer = fake.NewAuth(&fake.AuthOptions{Name: s.name})
		s.Intercept("authorize", fake.DemoConsent(s.name))
		_, stop, err := s.Listen()
		if err != nil {
			return w, err
		}
		w.stops = append(w.stops, stop)
	}
	for _, s := range []struct {
		name string
		as   *demoSignIn
	}{{"notes", accounts}, {"tickets", office}, {"mail", office}, {"reports", nil}} {
		url, err := w.serve(s.name, s.as)
		if err != nil {
			return w, err
		}
		cfg.Servers = append(cfg.Servers, config.Server{Name: s.name, Transport: config.TransportHTTP, URL: url, KeepAlive: time.Hour})
	}
	for i := range cfg.Servers {
		cfg.Servers[i] = cfg.Servers[i].WithDefaults()
	}
	return w, w.open(ctx, f, cfg, home)
}

// serve starts one HTTP server, behind a login where as is not nil.
func (w *demoWorld) serve(name string, as *demoSignIn) (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := fake.New(&fake.Options{Name: name, Tools: fake.Demo(name)})
	url = "http://" + l.Addr().String() + "/mcp"
	h := s.Handler()
	if as != nil {
		h = as.Protect(&fake.Protected{Resource: url}, h)
		w.signIn[name] = as
	}
	if name == "tickets" {
		w.tickets = s
	}
	hs := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	var done sync.WaitGroup
	done.Go(func() { _ = hs.Serve(l) }) // ends with http.ErrServerClosed
	w.stops = append(w.stops, func() {
		s.Close()
		_ = hs.Close() // nobody is served any more
		done.Wait()
	})
	return url, nil
}

// open makes the host and serves it. Nothing of the user's is read: it has a home
// of its own and keeps everything in memory.
func (w *demoWorld) open(ctx context.Context, f *cmdutil.Factory, cfg *config.Config, home string) error {
	sys := f.IO.System.WithDefaults()
	lookup := sys.LookupEnv
	sys.LookupEnv = func(name string) (string, bool) {
		if name == "USHER_HOME" {
			return home, true
		}
		return lookup(name)
	}
	h, err := app.Open(ctx, &app.Options{
		Config: cfg, Load: config.LoadOptions{System: sys}, Store: vault.NewMemory(), Log: f.Logger(), Executable: f.IO.Executable,
		ClientVersion: cmdutil.Version().Number,
	})
	if err != nil {
		return err
	}
	w.host = h
	w.stops = append(w.stops, func() { _ = h.Close() }) // the demo has said what it had to say
	l, err := net.Listen("tcp", demoAddress)
	if err != nil {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	g := h.Frontend().Gateway(nil)
	mux := serve.GatewayMux(h, g)
	w.console = serve.MountConsole(h, g, l.Addr(), mux)
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { _ = g.Serve(serving, l, mux) }) // it ends with the demo
	w.stops = append(w.stops, func() {
		w.console.Close()
		end()
		done.Wait()
	})
	return nil
}

func (w *demoWorld) close() {
	for i := len(w.stops) - 1; i >= 0; i-- {
		w.stops[i]()
	}
}

// consent does what a person does on the consent page of a server: it allows, and
// follows the browser's way back.
func (w *demoWorld) consent(ctx context.Context, server, page string) error {
	back, err := w.signIn[server].Consent(ctx, page+"&allow=1")
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, back.String(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// sharedWith names a server that logs in at the same place and comes before it.
func (w *demoWorld) sharedWith(server string, before []string) string {
	for _, other := range before {
		if w.signIn[other] == w.signIn[server] {
			return other
		}
	}
	return ""
}
