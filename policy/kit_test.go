package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeHost is a host whose servers all list the same tools and answer as do says.
type fakeHost struct {
	do    func(ctx context.Context, k host.Key, req host.Request) ([]byte, error)
	calls atomic.Int64
	lists atomic.Int64

	mu    sync.Mutex // guards what follows
	tools [][]byte
	at    time.Time
	stale bool
	known bool
	old   *host.Catalog // remembered instead of tools, until the list is read
	err   error         // of Tools
	fails error         // why the list cannot be read again, while the last known one stands in
	sent  []string
}

func newFakeHost(tools ...string) *fakeHost {
	h := &fakeHost{}
	h.setTools(tools...)
	return h
}

// setTools is what a server lists from now on; nobody has read it yet.
func (h *fakeHost) setTools(tools ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tools = nil
	for _, t := range tools {
		h.tools = append(h.tools, []byte(t))
	}
	h.known = false
}

func (h *fakeHost) Do(ctx context.Context, k host.Key, req host.Request) ([]byte, error) {
	h.calls.Add(1)
	h.mu.Lock()
	h.sent = append(h.sent, req.Method+" "+string(req.Params))
	h.mu.Unlock()
	if h.do == nil {
		return []byte(`{"content":[]}`), nil
	}
	return h.do(ctx, k, req)
}

func (h *fakeHost) Tools(context.Context, host.Key) (host.Catalog, error) {
	h.lists.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return host.Catalog{}, h.err
	}
	if h.fails != nil {
		return host.Catalog{Tools: h.tools, At: h.at, Stale: true, Problem: h.fails, Version: mcp.Latest}, nil
	}
	h.known, h.at, h.stale, h.old = true, time.Now(), false, nil
	return host.Catalog{Tools: h.tools, At: h.at, Version: mcp.Latest}, nil
}

func (h *fakeHost) Cached(host.Key) (host.Catalog, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.old != nil {
		return *h.old, true
	}
	return host.Catalog{Tools: h.tools, At: h.at, Stale: h.stale, Version: mcp.Latest}, h.known
}

func (h *fakeHost) log() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.sent...)
}

// caller is a host of a test.
type caller interface {
	Do(ctx context.Context, k host.Key, req host.Request) ([]byte, error)
	Tools(ctx context.Context, k host.Key) (host.Catalog, error)
	Cached(k host.Key) (host.Catalog, bool)
}

// lineTo is the way to a key of such a host.
type lineTo struct {
	host caller
	key  host.Key
}

func (l lineTo) Do(ctx context.Context, req host.Request) ([]byte, error) {
	return l.host.Do(ctx, l.key, req)
}
func (l lineTo) Tools(ctx context.Context) (host.Catalog, error) { return l.host.Tools(ctx, l.key) }
func (l lineTo) Cached() (host.Catalog, bool)                    { return l.host.Cached(l.key) }
func (l lineTo) Forget()                                         {}

func (h *fakeHost) line(k Key) line { return lineTo{h, k} }

func openGate(t testing.TB, h caller, store vault.Store, opt *Options) *Gate {
	t.Helper()
	g := newGate(func(k Key) line { return lineTo{h, k} }, store, opt)
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

func simpleTool(name string) string {
	return fmt.Sprintf(`{"name":%s,"description":"does %s","inputSchema":{"type":"object"}}`, quoted(name), name)
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// userRule is a rule in line n of the user's file.
func userRule(n int, pattern string) config.Rule {
	return config.Rule{Pattern: pattern, Origin: config.Origin{File: "/home/me/mcp.json", Line: n, Layer: config.LayerUser}}
}

func configOf(allow, deny []string, servers ...config.Server) *config.Config {
	c := &config.Config{Usher: config.DefaultSettings(), Servers: servers}
	for i, p := range allow {
		c.Usher.Policy.Allow = append(c.Usher.Policy.Allow, userRule(10+i, p))
	}
	for i, p := range deny {
		c.Usher.Policy.Deny = append(c.Usher.Policy.Deny, userRule(14+i, p))
	}
	return c
}

func callOf(server, tool string) Call { return Call{Key: Key{Server: server}, Tool: tool} }

// answers makes a do that returns one result.
func answers(result string) func(context.Context, host.Key, host.Request) ([]byte, error) {
	return func(context.Context, host.Key, host.Request) ([]byte, error) { return []byte(result), nil }
}

// cachedCatalog is what is remembered of the server now.
func (h *fakeHost) cachedCatalog() *host.Catalog {
	c, _ := h.Cached(host.Key{})
	return &c
}

// remember makes an older catalog the one that is known, while the server lists
// something else.
func (h *fakeHost) remember(c host.Catalog) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.old = &c
}

// withParams is a request with the params of a client.
func withParams(raw []byte) Request {
	var r Request
	r.Params = raw
	return r
}
