package gateway_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
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
		OnNotification: func(k host.Key, m mcp.Message) {
			s.gate.Notified(k, m)
			s.surface.Notified(k, m)
		},
	})
	s.gate = policy.NewGate(s.hosted, vault.NewMemory(), nil)
	s.surface = surface.New(s.gate, &surface.Options{Mode: "direct", Events: events})
	s.gateway = gateway.New(s.surface, opt)
	for _, srv := range servers {
		srv.KeepAlive = config.DefaultKeepAlive
		srv = srv.WithDefaults()
		if err := s.hosted.Spawn(t.Context(), srv, &host.SpawnOptions{Lazy: true}); err != nil {
			t.Fatal(err)
		}
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
	for _, v := range mcp.Versions() {
		if mcp.Stateless(v) == modern {
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
