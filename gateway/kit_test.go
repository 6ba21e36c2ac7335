package gateway_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/upstream"
	"github.com/usher-mcp/usher/vault"
)

// The test binary plays the children of the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child-fake" {
		os.Exit(fake.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// stack is a gateway on a real port with everything behind it.
type stack struct {
	t       *testing.T
	url     string
	gateway *gateway.Gateway
	surface *surface.Surface
	hosted  *host.Host
	gate    *policy.Gate
	servers []surface.Server
	stop    context.CancelFunc
	done    chan error
}

// newStack serves the given servers until the test ends.
func newStack(t *testing.T, opt *gateway.Options, servers ...config.Server) *stack {
	t.Helper()
	s := &stack{t: t, done: make(chan error, 1)}
	events := new(event.Bus[event.Event])
	s.hosted = host.New(&host.Options{
		Events: events, MaxConnected: 40, Drain: time.Second,
		Connection: func(k host.Key) upstream.Options {
			l := s.surface.Lane(k)
			return upstream.Options{
				Capabilities: l.Capabilities, Version: l.Version, OnRequest: l.Ask, Greet: l.Greet,
				Grace: 100 * time.Millisecond, Kill: 100 * time.Millisecond,
			}
		},
		OnNotification: func(k host.Key, m wire.Message) {
			s.gate.Notified(k, m)
			s.surface.Notified(k, m)
		},
	})
	s.gate = policy.NewGate(s.hosted, vault.NewMemory(), nil)
	s.surface = surface.New(s.gate, &surface.Options{Hosted: s, Mode: "direct", Events: events})
	s.gateway = gateway.New(s.surface, opt)
	for _, srv := range servers {
		srv.KeepAlive = config.DefaultKeepAlive
		srv = srv.WithDefaults()
		if err := s.hosted.Spawn(t.Context(), srv, &host.SpawnOptions{Lazy: true}); err != nil {
			t.Fatal(err)
		}
		s.servers = append(s.servers, surface.Server{Name: srv.Name, Transport: string(srv.Transport), Eager: true})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- s.gateway.Serve(ctx, l, nil) }()
	t.Cleanup(s.close)
	return s
}

func (s *stack) close() {
	s.stop()
	if err := <-s.done; err != nil {
		s.t.Errorf("serve: %v", err)
	}
	s.surface.Close()
	s.gate.Close(context.Background())
	s.hosted.Close()
}

// What a surface has to know of servers.

func (s *stack) Servers(string) []surface.Server { return s.servers }

func (s *stack) Named(name string) (string, bool) {
	return name, slices.ContainsFunc(s.servers, func(srv surface.Server) bool { return srv.Name == name })
}

func (s *stack) Status(context.Context, string, string) []surface.Status { return nil }

func (s *stack) List(ctx context.Context, k policy.Key, method string) (policy.Catalog, error) {
	return s.hosted.List(ctx, k, method)
}

func (s *stack) Listen(ctx context.Context, k policy.Key, want surface.Subscription, on func(wire.Message)) error {
	return s.hosted.Listen(ctx, k, upstream.Subscription{Tools: want.Tools, Prompts: want.Prompts, Resources: want.Resources, URIs: want.URIs, Ready: want.Ready}, on)
}

func (s *stack) Notify(ctx context.Context, k policy.Key, method string, params []byte) error {
	return s.hosted.Notify(ctx, k, method, params)
}

func (s *stack) Version(ctx context.Context, k policy.Key) (string, error) {
	return s.hosted.Version(ctx, k)
}

func (s *stack) Release(k policy.Key) { s.hosted.Release(k) }

func (s *stack) Explain(err error) surface.Problem {
	p := surface.Problem{Text: err.Error(), Kind: surface.KindUnavailable}
	var known *host.Error
	if errors.As(err, &known) {
		p.Server, p.Next = known.Server, known.Hint
	}
	switch {
	case errors.Is(err, host.ErrNeedsLogin):
		p.Kind = surface.KindLogin
	case errors.Is(err, host.ErrUnknownTool):
		p.Kind = surface.KindUnknownTool
	case errors.Is(err, host.ErrUnknownServer):
		p.Kind = surface.KindUnknownServer
	}
	return p
}

// httpFake is a fake server over HTTP and how to reach it.
func httpFake(t *testing.T, name string, opt *fake.Options) (config.Server, *fake.Server) {
	t.Helper()
	if opt == nil {
		opt = &fake.Options{}
	}
	opt.Name = name
	f := fake.New(opt)
	url, stop, err := f.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: url + "/mcp"}, f
}

// stdioFake is a fake server as a child; what happens to it stands in the file.
func stdioFake(t *testing.T, name string, args ...string) (config.Server, string) {
	t.Helper()
	ledger := filepath.Join(t.TempDir(), "ledger")
	args = append([]string{"child-fake", "--name", name, "--ledger", ledger}, args...)
	return config.Server{Name: name, Transport: config.TransportStdio, Command: os.Args[0], Args: args}, ledger
}

// versionsOf are the revisions of one era.
func versionsOf(modern bool) []string {
	var out []string
	for _, v := range wire.Versions() {
		if wire.Modern(v) == modern {
			out = append(out, v)
		}
	}
	return out
}

// long bounds waits that should be short.
func long(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// header makes headers from pairs.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Set(pairs[i], strings.TrimSpace(pairs[i+1]))
	}
	return h
}
