package gate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is a text that only a caller who may see a part of a server may ever read.
func canary(server, part string) string { return "CANARY-" + server + "-" + part + "." }

// The parts of a server beside its tools.
var wholeParts = []string{"prompt", "prompt-result", "resource", "resource-result", "instructions", "completion"}

var tools = []string{"read", "write"}

// workToken is the access token of crm@work.
const workToken = "CANARY-token-of-work."

// server is a fake MCP server whose every text is a canary, and what reached it.
type server struct {
	name string
	hits atomic.Int64 // HTTP requests of any kind

	mu   sync.Mutex // guards used
	used []string   // what ran: tools, prompts, resources
}

func newServer(t testing.TB, name string, versions []string) (*server, config.Server) {
	t.Helper()
	s := &server{name: name}
	opt := &fake.Options{
		Name: name, Instructions: canary(name, "instructions"), Versions: versions,
		Prompts:   []fake.Prompt{{Def: fmt.Appendf(nil, `{"name":"greet","description":%q}`, canary(name, "prompt")), Result: textPrompt(canary(name, "prompt-result"))}},
		Resources: []fake.Resource{{Def: fmt.Appendf(nil, `{"uri":"%s://doc","name":%q}`, name, canary(name, "resource")), Result: fmt.Appendf(nil, `{"contents":[{"uri":"%s://doc","text":%q}]}`, name, canary(name, "resource-result"))}},
	}
	for _, tool := range append(tools, canary(name, "unlisted-name")) {
		tool = strings.TrimSuffix(tool, ".")
		opt.Tools = append(opt.Tools, fake.Tool{
			Def: fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, tool, canary(name, tool+"-description")),
			Handle: func(_ context.Context, c *fake.Call) ([]byte, error) {
				s.ran("tool " + c.Name)
				return fake.TextResult(canary(name, tool+"-result") + strings.TrimPrefix(c.Header.Get("Authorization"), "Bearer ")), nil
			},
		})
	}
	f := fake.New(opt)
	inner := f.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		f.Close()
		web.Close()
	})
	return s, config.Server{Name: name, Transport: config.TransportHTTP, URL: web.URL + "/mcp", KeepAlive: time.Minute}.WithDefaults()
}

func textPrompt(text string) []byte {
	return fmt.Appendf(nil, `{"messages":[{"role":"user","content":{"type":"text","text":%q}}]}`, text)
}

func (s *server) ran(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = append(s.used, what)
}

// world is a gateway with tokens in front of two servers.
type world struct {
	host     *app.App
	url      string
	client   *http.Client
	servers  map[string]*server
	tokens   map[string]string // by caller
	invalid  map[string]bool   // callers whose token is not valid
	mu       sync.Mutex        // guards finished
	finished []policy.Finished
}

func newWorld(t testing.TB, callers []caller, versions ...string) *world {
	t.Helper()
	if versions == nil {
		versions = []string{mcp.V20260728}
	}
	w := &world{servers: map[string]*server{}, tokens: map[string]string{}, invalid: map[string]bool{}}
	cfg := &config.Config{Usher: config.DefaultSettings()}
	cfg.Usher.Gateway.Profiles = map[string]config.Profile{"tools": {Tools: []string{"crm/read"}}, "crm": {Servers: []string{"crm"}}}
	urls := map[string]string{}
	for _, name := range []string{"crm", "hr"} {
		s, def := newServer(t, name, versions)
		w.servers[name], urls[name] = s, def.URL
		cfg.Servers = append(cfg.Servers, def)
	}
	store := vault.NewMemory()
	grant := fmt.Sprintf(`{"generation":1,"flow":"browser","server_url":%[1]q,"resource":%[1]q,"access_token":%[2]q,"token_type":"Bearer"}`, urls["crm"], workToken)
	if _, err := store.Put(t.Context(), vault.Key{Kind: vault.KindGrant, Principal: vault.Local, Name: "crm@work"}, []byte(grant), 0); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	h, err := app.Open(t.Context(), &app.Options{
		Config: cfg, Store: store,
		Load: config.LoadOptions{System: config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) {
			return home, name == "USHER_HOME"
		}}},
		OnCall: func(f policy.Finished) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.finished = append(w.finished, f)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.host = h
	g := h.Frontend().Gateway(h.Frontend().Tokens())
	web := httptest.NewServer(g.Handler())
	w.url, w.client = web.URL, &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	for _, c := range callers {
		w.mint(t, c)
	}
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		g.Close()
		web.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// mint makes the token of a caller, and spoils it where the caller's is not valid.
func (w *world) mint(t testing.TB, c caller) {
	t.Helper()
	text, token, err := w.host.Frontend().Tokens().Mint(t.Context(), authn.Mint{Principal: c.principal, Servers: c.servers, Tools: c.tools, Profiles: c.profiles, TTL: c.ttl})
	if err != nil {
		t.Fatal(err)
	}
	w.tokens[c.name], w.invalid[c.name] = text, c.revoked || c.ttl > 0
	if c.revoked {
		if err := w.host.Frontend().Tokens().Revoke(t.Context(), token.ID); err != nil {
			t.Fatal(err)
		}
	}
	if c.ttl > 0 {
		for !token.Expired() {
			select {
			case <-time.After(time.Until(token.Expires) + time.Millisecond):
			case <-t.Context().Done():
				t.Fatal(t.Context().Err())
			}
		}
	}
}

// post sends one request of the stateless protocol and returns all that comes back.
func (w *world) post(t testing.TB, caller, path, method, name, params string) (status int, reply string) {
	t.Helper()
	meta := fmt.Sprintf(`"_meta":{%q:"2026-07-28",%q:{}}`, mcp.MetaVersion, mcp.MetaClientCaps)
	if params != "" {
		meta += ","
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, meta, params)
	head := map[string]string{wire.HeaderVersion: mcp.Latest, wire.HeaderMethod: method}
	if name != "" {
		head[wire.HeaderName] = name
	}
	return w.send(t, caller, http.MethodPost, path, body, head)
}

func (w *world) send(t testing.TB, caller, verb, path, body string, head map[string]string) (status int, reply string) {
	t.Helper()
	ctx := t.Context()
	if strings.Contains(body, mcp.MethodListen) && !w.invalid[caller] { // a stream does not end by itself
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, 60*time.Millisecond)
		defer stop()
	}
	req, err := http.NewRequestWithContext(ctx, verb, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.tokens[caller])
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range head {
		req.Header.Set(k, v)
	}
	res, err := w.client.Do(req)
	if err != nil {
		if ctx.Err() != nil && t.Context().Err() == nil {
			return 0, "" // it said nothing in its time
		}
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got bytes.Buffer
	_ = res.Header.Write(&got)
	_, _ = io.Copy(&got, res.Body) // a stream that was cut has said what it had to say
	return res.StatusCode, got.String()
}
