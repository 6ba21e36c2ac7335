package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// lab is the real thing beside the model: a gateway with tokens whose configuration
// is a file, in front of fake servers.
type lab struct {
	tried   map[account]bool // logins that were asked for
	host    *app.App
	store   vault.Store
	file    string
	url     string
	http    *http.Client
	servers map[string]*fake.Server
	urls    map[string]string
	tokens  map[string]minted // by client
	dead    []string          // revoked tokens
	minter  *authn.Tokens

	mu       sync.Mutex // guards finished
	finished []policy.Finished
}

type minted struct{ text, id string }

// versions of the protocol that the servers speak: both kinds, and one that has all.
var spoken = map[string][]string{"crm": {mcp.V20260728}, "hr": {mcp.V20251125}, "docs": nil}

func newLab(rt *rapid.T, st *state, clients []client) *lab {
	l := &lab{tried: map[account]bool{}, store: vault.NewMemory(), servers: map[string]*fake.Server{}, urls: map[string]string{}, tokens: map[string]minted{}}
	for _, name := range modelServers {
		l.serve(rt, name)
	}
	for a, there := range st.logins {
		if there {
			l.login(rt, a)
		}
	}
	home, err := os.MkdirTemp("", "usher-model")
	must(rt, err)
	rt.Cleanup(func() { _ = os.RemoveAll(home) })
	l.file = filepath.Join(home, "mcp.json")
	l.write(rt, st)
	l.host, err = app.Open(rt.Context(), &app.Options{
		Store: l.store,
		Load: config.LoadOptions{System: config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) {
			return home, name == "USHER_HOME"
		}}},
		OnCall: func(f policy.Finished) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.finished = append(l.finished, f)
		},
	})
	must(rt, err)
	l.minter = l.host.Frontend().Tokens()
	g := l.host.Frontend().Gateway(l.minter)
	web := httptest.NewServer(g.Handler())
	l.url, l.http = web.URL, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	rt.Cleanup(func() {
		l.http.CloseIdleConnections()
		g.Close()
		web.Close()
		if err := l.host.Close(); err != nil {
			rt.Error(err)
		}
	})
	for _, c := range clients {
		l.mint(rt, c)
	}
	return l
}

func must(rt *rapid.T, err error) {
	rt.Helper()
	if err != nil {
		rt.Fatal(err)
	}
}

// serve starts one fake server.
func (l *lab) serve(rt *rapid.T, name string) {
	opt := &fake.Options{
		Name: name, Instructions: canary(name, "instructions"), Versions: spoken[name], Tools: toolsOf(name, 0),
		Prompts: []fake.Prompt{{Def: fmt.Appendf(nil, `{"name":"greet","description":%q}`, canary(name, "prompt")), Result: textPrompt(canary(name, "prompt-result"))}},
	}
	for _, uri := range urisOf(name) {
		opt.Resources = append(opt.Resources, fake.Resource{
			Def:    fmt.Appendf(nil, `{"uri":%q,"name":%q}`, uri, canary(name, "resource")),
			Result: fmt.Appendf(nil, `{"contents":[{"uri":%q,"text":%q}]}`, uri, canary(name, "resource-result")),
		})
	}
	s := fake.New(opt)
	web := httptest.NewServer(s.Handler())
	rt.Cleanup(func() {
		s.Close()
		web.Close()
	})
	l.servers[name], l.urls[name] = s, web.URL+"/mcp"
}

// toolsOf are the tools of a server; that which is called flip has versions.
func toolsOf(name string, version int) (out []fake.Tool) {
	for _, tool := range modelTools {
		out = append(out, fake.Tool{
			Def: fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, tool, describedAs(name, tool, version)),
			Handle: func(_ context.Context, c *fake.Call) ([]byte, error) {
				return fake.TextResult(canary(name, tool+"-result") + strings.TrimPrefix(c.Header.Get("Authorization"), "Bearer ")), nil
			},
		})
	}
	return out
}

// write puts the state into the file of the configuration.
func (l *lab) write(rt *rapid.T, st *state) {
	servers := map[string]any{}
	for name := range st.servers {
		servers[name] = map[string]any{"url": l.urls[name]}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers, "usher": map[string]any{
		"policy":  map[string]any{"deny": append([]string{}, st.deny...)},
		"gateway": map[string]any{"profiles": st.profiles},
	}})
	must(rt, err)
	must(rt, os.WriteFile(l.file, text, 0o600))
}

func (l *lab) reread(rt *rapid.T, st *state) {
	l.write(rt, st)
	if got, err := l.host.ReloadConfig(rt.Context()); err != nil || len(got.Notes) > 0 {
		rt.Fatal(got, err)
	}
}

// login stores a login, as another process would.
func (l *lab) login(rt *rapid.T, a account) {
	grant := fmt.Sprintf(`{"generation":1,"flow":"browser","server_url":%[1]q,"resource":%[1]q,"access_token":%[2]q,"token_type":"Bearer"}`, l.urls[a.server], bearerOf(a))
	_, err := l.store.Put(rt.Context(), vault.Key{Kind: vault.KindGrant, Principal: a.principal, Name: label(a.server, a.label)}, []byte(grant), 0)
	must(rt, err)
}

func (l *lab) logout(rt *rapid.T, a account) {
	out, err := l.host.Logins().Logout(rt.Context(), auth.Account{Principal: a.principal, Server: a.server, Label: a.label})
	if err != nil || len(out.Problems) > 0 {
		rt.Fatal(out, err)
	}
}

func (l *lab) mint(rt *rapid.T, c client) {
	text, token, err := l.minter.Mint(rt.Context(), authn.Mint{Principal: c.principal, Servers: c.servers, Tools: c.tools})
	must(rt, err)
	l.tokens[c.name] = minted{text, token.ID}
}

// look waits until the lists of an account are known as they are: usher reads them
// again when it hears that the server has changed them.
func (l *lab) look(rt *rapid.T, a account, version int) {
	k := host.Key{Principal: a.principal, Server: a.server, Account: a.label}
	who := policy.As(a.principal)
	var err error
	began := time.Now()
	for n := 1; ; n++ {
		var got policy.Listing
		got, err = l.host.Gate().Tools(rt.Context(), who, k)
		if err != nil || strings.Contains(string(bytes.Join(got.Catalog.Tools, nil)), describedAs(a.server, "flip", version)) {
			break
		}
		if time.Since(began) > 10*time.Second {
			rt.Fatalf("usher does not hear that %v has changed: %s", a, got.Catalog.Tools)
		}
		if n%200 == 0 { // it was said before usher's connection had subscribed
			l.servers[a.server].SetTools(toolsOf(a.server, version))
		}
		<-time.After(time.Millisecond)
	}
	for _, method := range []string{mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList} {
		if err == nil {
			err = l.host.Gate().Refresh(rt.Context(), who, k, method)
		}
	}
	must(rt, err)
}

// reply is what came back.
type reply struct {
	status  int
	session string
	raw     string // headers and body
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
	}
	content struct {
		Content []struct{ Text string }
		IsError bool
	}
}

// failed reports whether it is anything but a result.
func (r *reply) failed() bool {
	return r.status != http.StatusOK || r.Error != nil || r.content.IsError
}

// text is the error, or what a tool said.
func (r *reply) text() string {
	switch {
	case r.Error != nil:
		return r.Error.Message
	case r.Result == nil:
		_, body, _ := strings.Cut(r.raw, "\r\n\r\n")
		return strings.TrimSpace(body)
	}
	var b strings.Builder
	for _, c := range r.content.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// session is an open session of the legacy protocol.
type session struct {
	client client
	at     place
	id     string
}

// send sends a request as a client, within a session unless that is nil.
func (l *lab) send(rt *rapid.T, token string, at place, in *session, method, name, params string) *reply {
	head := map[string]string{wire.HeaderVersion: mcp.V20251125}
	switch {
	case in != nil:
		head[wire.HeaderSession] = in.id
	case method != mcp.MethodInitialize:
		head = map[string]string{wire.HeaderVersion: mcp.Latest, wire.HeaderMethod: method}
		if name != "" {
			head[wire.HeaderName] = name
		}
		params = strings.TrimSuffix(fmt.Sprintf(`"_meta":{%q:"2026-07-28",%q:{}},%s`, mcp.MetaVersion, mcp.MetaClientCaps, params), ",")
	}
	return l.do(rt, token, http.MethodPost, at, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params), head)
}

func (l *lab) do(rt *rapid.T, token, verb string, at place, body string, head map[string]string) *reply {
	ctx, stop := context.WithTimeout(rt.Context(), 30*time.Second)
	defer stop()
	res, err := l.http.Do(l.request(rt, ctx, token, verb, at, body, head))
	must(rt, err)
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	must(rt, err)
	var b strings.Builder
	_ = res.Header.Write(&b)
	r := &reply{status: res.StatusCode, session: res.Header.Get(wire.HeaderSession), raw: b.String() + "\r\n" + string(all)}
	text := string(all)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(s string) bool { return !strings.HasPrefix(s, "data: {") })
		text = strings.TrimPrefix(lines[len(lines)-1], "data: ")
	}
	if strings.HasPrefix(text, "{") {
		must(rt, json.Unmarshal([]byte(text), r))
		_ = json.Unmarshal(r.Result, &r.content)
	}
	return r
}

func (l *lab) request(rt *rapid.T, ctx context.Context, token, verb string, at place, body string, head map[string]string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, verb, l.url+at.path, strings.NewReader(body))
	must(rt, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range head {
		req.Header.Set(k, v)
	}
	return req
}

// take returns the records since the last time.
func (l *lab) take() []policy.Finished {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.finished
	l.finished = nil
	return out
}
