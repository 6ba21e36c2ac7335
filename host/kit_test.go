package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/retry"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/upstream"
)

// The test binary plays the children of the tests: the guard and the misbehaving
// server.
func TestMain(m *testing.M) {
	process.Main()
	if len(os.Args) > 1 && os.Args[1] == "child-fake" {
		os.Exit(fake.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// double is a connection that does what a test says. Without functions it answers
// everything with an empty object.
type double struct {
	do      func(ctx context.Context, req mcp.Request) ([]byte, error)
	list    func(ctx context.Context, method string) (upstream.List, error)
	listen  func(ctx context.Context, on func(mcp.Message)) error
	ack     chan struct{} // holds the acknowledgement of Listen back; nil: at once
	lose    chan struct{} // has Listen lose its stream with each value, and not get it back
	version string
	caps    string
	closing time.Duration // how long Close takes
	gone    func()        // called at its end

	calls   atomic.Int32
	lists   atomic.Int32
	notes   atomic.Int32
	closed  atomic.Bool
	learned atomic.Pointer[[][]byte]
	life    context.Context
	end     context.CancelFunc
}

func (d *double) Do(ctx context.Context, req mcp.Request) ([]byte, error) {
	d.calls.Add(1)
	if d.do == nil {
		return []byte(`{}`), nil
	}
	return d.do(ctx, req)
}

func (d *double) Call(ctx context.Context, req mcp.Request, answer mcp.Responder) ([]byte, error) {
	req.OnRequest = answer
	return d.Do(ctx, req)
}

func (d *double) List(ctx context.Context, method string) (upstream.List, error) {
	d.lists.Add(1)
	if d.list == nil {
		return upstream.List{Items: [][]byte{[]byte(`{"name":"echo"}`)}, Received: time.Now()}, nil
	}
	return d.list(ctx, method)
}

func (d *double) LearnTools(tools [][]byte) [][]byte { d.learned.Store(&tools); return tools }

func (d *double) Listen(ctx context.Context, want upstream.Subscription, on func(mcp.Message)) error {
	if d.ack != nil {
		<-d.ack
	}
	if want.Ready != nil {
		want.Ready()
	}
	if d.listen != nil {
		return d.listen(ctx, on)
	}
	select {
	case <-d.lose:
		want.Lost()
		<-ctx.Done()
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (d *double) Notify(context.Context, string, []byte) error { d.notes.Add(1); return nil }

func (d *double) Version() string { return d.version }

func (d *double) Info() upstream.ServerInfo {
	return upstream.ServerInfo{Version: d.version, Capabilities: []byte(d.caps)}
}

func (d *double) Stats() upstream.Stats { return upstream.Stats{} }

func (d *double) Gone() context.Context { return d.life }

func (d *double) Close() error {
	if !d.closed.Swap(true) {
		_ = retry.Sleep(context.Background(), d.closing)
		if d.gone != nil {
			d.gone()
		}
	}
	d.die()
	return nil
}

// die ends the connection as a crash would.
func (d *double) die() { d.end() }

// stage is a dialer whose connections come from a function.
type stage struct {
	mu    sync.Mutex
	made  []*double
	dials map[string]int
	opts  []upstream.Options
	// next makes the n-th connection to a server, counted from 1.
	next func(ctx context.Context, srv config.Server, n int) (*double, error)
}

func (s *stage) dial(ctx context.Context, srv *config.Server, opt *upstream.Options) (conn, error) {
	s.mu.Lock()
	if s.dials == nil {
		s.dials = map[string]int{}
	}
	s.dials[srv.Name]++
	n := s.dials[srv.Name]
	s.opts = append(s.opts, *opt)
	s.mu.Unlock()
	if srv.Transport == config.TransportStdio {
		opt.OnStart()
	}
	d, err := &double{}, error(nil)
	if s.next != nil {
		d, err = s.next(ctx, *srv, n)
	}
	if err != nil {
		return nil, err
	}
	d.life, d.end = context.WithCancel(context.Background())
	if d.version == "" {
		d.version = mcp.LatestLegacy
	}
	s.mu.Lock()
	s.made = append(s.made, d)
	s.mu.Unlock()
	return d, nil
}

func (s *stage) count(server string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials[server]
}

func (s *stage) last() *double {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[len(s.made)-1]
}

// open returns a Host on the stage with one lazy server "a" of the given
// definition.
func (s *stage) open(t *testing.T, opt *Options, change ...func(*config.Server)) *Host {
	t.Helper()
	with := Options{}
	if opt != nil {
		with = *opt
	}
	with.LoginCommand = func(k Key) string {
		if k.Account != "" {
			return "log in to " + k.Server + "@" + k.Account
		}
		return "log in to " + k.Server
	}
	h := newHost(&with, s.dial)
	t.Cleanup(h.Close)
	mustSpawn(t, h, lazyServer("a", change...))
	return h
}

func lazyServer(name string, change ...func(*config.Server)) config.Server {
	lazy := true
	srv := config.Server{Name: name, Command: "server", Lazy: &lazy, KeepAlive: config.DefaultKeepAlive}.WithDefaults()
	for _, c := range change {
		c(&srv)
	}
	return srv
}

func mustSpawn(t testing.TB, h *Host, srv config.Server) {
	t.Helper()
	if err := h.Spawn(t.Context(), srv, nil); err != nil {
		t.Fatal(err)
	}
}

func callTool(name string, args any) Request {
	raw, err := json.Marshal(map[string]any{"name": name, "arguments": args})
	if err != nil {
		panic(err)
	}
	return Request{Request: mcp.Request{Method: mcp.MethodToolsCall, Params: raw}}
}

var keyA = Key{Server: "a"}

// transportError is a failure of the connection.
func transportError(written bool) error {
	return &upstream.TransportError{Server: "a", Op: "receive", Written: written, Err: errors.New("reset")}
}

func stateOf(t testing.TB, h *Host, name string) ServerStatus {
	t.Helper()
	for _, s := range h.Status().Servers {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no status of %s", name)
	return ServerStatus{}
}

// said is what a person is told: the error, and the next step.
func said(err error) string {
	var e *Error
	if errors.As(err, &e) && e.Hint() != "" {
		return err.Error() + "; " + e.Hint()
	}
	return err.Error()
}

func actionOf(err error) Action {
	var e *Error
	if errors.As(err, &e) {
		return e.Action
	}
	return ""
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// childServer is a fake server in a process of its own.
func childServer(t testing.TB, name string, args ...string) config.Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lazy := true
	return config.Server{
		Name: name, Command: exe, Args: append([]string{"child-fake", "--name", name}, args...),
		Lazy: &lazy, KeepAlive: config.DefaultKeepAlive,
	}.WithDefaults()
}

// children gives connections that end quickly, and rings to look into.
func children() func(Key) upstream.Options {
	return func(Key) upstream.Options {
		return upstream.Options{Stderr: process.NewRing(0), Grace: 200 * time.Millisecond, Kill: 300 * time.Millisecond, AnswerTimeout: time.Second}
	}
}

func nonce(i int) map[string]any { return map[string]any{"n": fmt.Sprint(i)} }
