package surface

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/upstream"
)

// labels are the named accounts of every principal, by server.
type labels map[string][]string

func (l labels) Labels(_, server string) []string { return l[server] }

func (l labels) Has(_ context.Context, _, server, label string) bool {
	return slices.Contains(l[server], label)
}

// memory is a host.Memory that survives a restart.
type memory struct {
	mu    sync.Mutex // guards tools
	tools map[host.Key]host.Catalog
}

func (*memory) Era(context.Context, string) (string, bool)  { return "", false }
func (*memory) RememberEra(context.Context, string, string) {}
func (m *memory) Tools(_ context.Context, k host.Key, _ string) (host.Catalog, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k.Lane = ""
	c, ok := m.tools[k]
	return c, ok
}

func (m *memory) RememberTools(_ context.Context, k host.Key, _ string, c host.Catalog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tools == nil {
		m.tools = map[host.Key]host.Catalog{}
	}
	k.Lane = ""
	m.tools[k] = c
}

// rig is a surface with everything behind it.
type rig struct {
	*Surface
	host     *host.Host
	gate     *policy.Gate
	accounts labels
	bus      *event.Bus[event.Event]
	finished []policy.Finished // refusals and calls, in order
	mu       sync.Mutex        // guards finished
}

// options are those of a rig.
type options struct {
	Options
	Logins policy.Logins
}

// view returns the view on one server for an agent.
func (w *rig) view(t testing.TB, a Agent, name string) View {
	t.Helper()
	v, err := w.Server(t.Context(), a, name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// start makes a rig; close it with the test. Its lists wait for all servers that answer,
// however slow the machine is.
func start(t testing.TB, servers []config.Server, opt options, edit func(*config.Config, *host.Options)) *rig {
	t.Helper()
	opt.Quiet = cmp.Or(opt.Quiet, maxWait)
	lazy := true
	cfg := &config.Config{Usher: config.DefaultSettings()}
	for _, s := range servers {
		s.Lazy, s.KeepAlive = &lazy, time.Minute
		cfg.Servers = append(cfg.Servers, s.WithDefaults())
	}
	w := &rig{bus: &event.Bus[event.Event]{}, accounts: labels{}}
	rt := upstream.NewTransport()
	ho := &host.Options{
		Events: w.bus, Transport: rt,
		OnNotification: func(k host.Key, m mcp.Message) {
			w.gate.Notified(k, m)
			w.Surface.Notified(k, m)
		},
		Connection: func(k host.Key) upstream.Options {
			l := w.Lane(k)
			return upstream.Options{Capabilities: l.Capabilities, Version: l.Version, OnRequest: l.Ask, Greet: l.Greet}
		},
	}
	if edit != nil {
		edit(cfg, ho)
	}
	w.host = host.New(ho)
	w.gate = policy.NewGate(w.host, nil, &policy.Options{Config: cfg, Accounts: w.accounts, Logins: opt.Logins, OnCall: func(f policy.Finished) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.finished = append(w.finished, f)
	}})
	opt.Events = w.bus
	w.Surface = New(w.gate, &opt.Options)
	w.host.Apply(t.Context(), cfg)
	t.Cleanup(func() {
		w.Surface.Close()
		w.gate.Close(context.Background())
		w.host.Close()
		w.bus.Close()
		rt.CloseIdleConnections()
	})
	return w
}

// serve runs a fake server and returns its definition.
func serve(t testing.TB, name string, o fake.Options) (config.Server, *fake.Server) {
	t.Helper()
	if o.Name == "" {
		o.Name = name
	}
	srv := fake.New(&o)
	url, stop, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: url + "/mcp"}, srv
}

var (
	modernOnly = []string{mcp.V20260728}
	legacyOnly = []string{mcp.V20251125, mcp.V20250618}
)

// agents of both eras.
var (
	modernAgent = Agent{Version: mcp.V20260728}
	legacyAgent = Agent{Version: mcp.V20251125, Lane: "session-1"}
)

// do asks a view and fails the test on an error.
func do(t testing.TB, v View, a Agent, method, params string) string {
	t.Helper()
	out, err := try(t, v, a, method, params)
	if err != nil {
		t.Fatalf("%s %s: %v", method, params, err)
	}
	return out
}

func try(t testing.TB, v View, a Agent, method, params string) (string, error) {
	t.Helper()
	var raw []byte
	if params != "" {
		raw = []byte(params)
	}
	out, err := v.Do(t.Context(), a, mcp.Request{Method: method, Params: raw})
	if err == nil && jsonx.Valid(out) != nil {
		t.Fatalf("%s: no JSON: %s", method, out)
	}
	return string(out), err
}

// names are those of a list.
func names(result, list, key string) []string {
	items, _ := jsonx.Get([]byte(result), list)
	out := []string{}
	for e := jsonx.Array(items); e.Next(); {
		out = append(out, jsonx.GetText(e.Value, key))
	}
	return out
}

// text is that of a tool's result, with whether it is an error.
func text(result string) (string, bool) { return plain([]byte(result)) }

// simple is a tool that answers with its server's name and its own.
func simple(server, name, description string) fake.Tool {
	return fake.Tool{
		Def: fmt.Appendf(nil, `{"name":%s,"description":%s,"inputSchema":{"type":"object"}}`, jsonx.Quote(name), jsonx.Quote(description)),
		Handle: func(context.Context, *fake.Call) ([]byte, error) {
			return fake.TextResult(server + "/" + name), nil
		},
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// switchedLogin is an Authorizer that wants a login until there is one.
type switchedLogin struct{ in atomic.Bool }

func (s *switchedLogin) Authorize(_ context.Context, k host.Key, _ *config.Server, _ *http.Request) error {
	if s.in.Load() {
		return nil
	}
	return &host.NeedsLoginError{Reason: "nobody is logged in", Command: "usher login " + k.Server}
}

func (s *switchedLogin) Refused(context.Context, host.Key, config.Server, *upstream.UnauthorizedError) error {
	return nil
}
