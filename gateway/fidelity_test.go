package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// Definitions and results cross the gateway to the byte, and arguments do on their
// way in, for agents and servers of either protocol.
func TestFidelity(t *testing.T) {
	for _, modern := range []bool{true, false} {
		var mu sync.Mutex
		got := map[string][]byte{}
		tools := fake.CorpusTools()
		for i := range tools {
			handle := tools[i].Handle
			tools[i].Handle = recorded(&mu, got, handle)
		}
		srv, _ := httpFake(t, "f", &fake.Options{Versions: versionsOf(modern), Tools: tools})
		s := newStack(t, nil, srv)
		for _, version := range []string{mcp.Latest, mcp.LatestLegacy, mcp.V20250326} {
			a := newAgent(t, s.url+"/servers/f/mcp", version, `{}`)
			list := a.do(long(t), mcp.MethodToolsList, `{}`, nil)
			if list.err != nil {
				t.Fatalf("server modern %t, agent %s: list: %v", modern, version, list.err)
			}
			for _, sample := range fake.Corpus() {
				where := fmt.Sprintf("server modern %t, agent %s, %s", modern, version, sample.Name)
				if !bytes.Contains(list.result, sample.Tool) {
					t.Errorf("%s: the definition is not in the list as it was sent", where)
				}
				const args = `{ "big":9007199254740993, "e":1E+2,"s":"\u00fc ü <b>\/","dup":1,"dup":2 ,"":null}`
				res := a.call(long(t), sample.ToolName(), args, nil)
				if !bytes.Equal(res.result, sample.Result) {
					t.Errorf("%s: result\n got %s\nwant %s", where, res.result, sample.Result)
				}
				mu.Lock()
				if string(got[sample.ToolName()]) != args {
					t.Errorf("%s: arguments arrived as %s", where, got[sample.ToolName()])
				}
				mu.Unlock()
			}
		}
	}
}

func recorded(mu *sync.Mutex, got map[string][]byte, handle fake.Handler) fake.Handler {
	return func(ctx context.Context, c *fake.Call) ([]byte, error) {
		mu.Lock()
		got[c.Name] = bytes.Clone(c.Args)
		mu.Unlock()
		return handle(ctx, c)
	}
}

// memoryTokens is a TokenStore.
type memoryTokens struct {
	mu  sync.Mutex
	all map[string][]byte
}

func (m *memoryTokens) Load(_ context.Context, id string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[id], nil
}

func (m *memoryTokens) Save(_ context.Context, id string, record []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string][]byte{}
	}
	m.all[id] = record
	return nil
}

func (m *memoryTokens) Remove(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.all[id]
	delete(m.all, id)
	return ok, nil
}

func (m *memoryTokens) All(context.Context) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out [][]byte
	for _, r := range m.all {
		out = append(out, r)
	}
	return out, nil
}

func (m *memoryTokens) IDs(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.all)), nil
}

// Two principals, a thousand interleaved calls each, of both protocols, over shared
// servers: nobody sees a byte of the other's. Neither do their sessions, parked
// calls or credentials serve the other, and no credential reaches a server.
func TestPrincipalsAreApart(t *testing.T) {
	old, oldFake := httpFake(t, "old", &fake.Options{Versions: versionsOf(false)})
	now, nowFake := httpFake(t, "now", &fake.Options{Versions: versionsOf(true)})
	tokens := authn.NewTokens(&memoryTokens{})
	s := newStack(t, &gateway.Options{Auth: tokens}, old, now)
	secret := map[string]string{}
	for _, who := range []string{"alice", "bob"} {
		text, _, err := tokens.Mint(t.Context(), authn.Mint{Principal: who})
		if err != nil {
			t.Fatal(err)
		}
		secret[who] = text
	}
	var wg sync.WaitGroup
	for who, token := range secret {
		for _, server := range []string{"old", "now"} {
			for _, version := range []string{mcp.Latest, mcp.LatestLegacy} {
				a := authorized(t, s.url+"/servers/"+server+"/mcp", version, token)
				wg.Go(func() { hammer(t, a, who, server+version) })
			}
		}
	}
	wg.Wait()
	for _, f := range []*fake.Server{oldFake, nowFake} {
		for _, e := range f.Ledger().Find(func(fake.Entry) bool { return true }) {
			if len(e.Headers["Authorization"]) > 0 || strings.Contains(fmt.Sprint(e.Headers), "usher_") {
				t.Fatalf("a credential of an agent reached the server: %v", e.Headers)
			}
		}
	}
}

// authorized is newAgent for one who has a token.
func authorized(t *testing.T, url, version, token string) *agent {
	t.Helper()
	a := &agent{t: t, url: url, version: version, caps: `{}`, token: token}
	if mcp.Stateless(version) {
		return a
	}
	resp, body := a.post(t.Context(), a.message("initialize", `{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{}}`), nil)
	if a.session = resp.Header.Get(wire.HeaderSession); a.session == "" {
		t.Fatalf("initialize: %d %s", resp.StatusCode, body)
	}
	return a
}

func hammer(t *testing.T, a *agent, who, lane string) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	a.http = &http.Client{Transport: transport}
	for i := range 250 {
		nonce := fmt.Sprintf(`{"nonce":"%s/%s/%d"}`, who, lane, i)
		params := `{"name":"echo","arguments":` + nonce + `}`
		resp, body := a.post(t.Context(), a.message(mcp.MethodToolsCall, params), nil)
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", nonce, resp.StatusCode, body)
			return
		}
		got, _ := jsonx.Path(body, "result", "structuredContent")
		if string(got) != nonce {
			t.Errorf("sent %s, got %s", nonce, body)
			return
		}
	}
}

// What belongs to one principal is nothing to another.
func TestNothingWorksForOthers(t *testing.T) {
	srv, _ := httpFake(t, "f", &fake.Options{Versions: versionsOf(false)})
	tokens := authn.NewTokens(&memoryTokens{})
	s := newStack(t, &gateway.Options{Auth: tokens}, srv)
	mint := func(m authn.Mint) string {
		text, _, err := tokens.Mint(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	alice, bob := mint(authn.Mint{Principal: "alice"}), mint(authn.Mint{Principal: "bob"})
	url := s.url + "/servers/f/mcp"

	session := authorized(t, url, mcp.LatestLegacy, alice)
	session.token = bob
	if resp, _ := session.post(t.Context(), session.message("ping", `{}`), nil); resp.StatusCode != 404 {
		t.Errorf("a session of somebody else: %d", resp.StatusCode)
	}
	asker := authorized(t, url, mcp.Latest, alice)
	asker.caps = canAll
	asked := asker.call(long(t), "ask", `{}`, nil)
	asker.token = bob
	if got := asker.retry(long(t), "ask", asked.result, questions[0]); got.err == nil || got.err.Code != mcp.CodeInvalidParams {
		t.Errorf("a state of somebody else: %v %s", got.err, got.result)
	}
	asker.token = alice
	if got := asker.retry(long(t), "ask", asked.result, questions[0]); !strings.Contains(string(got.result), "Ada") {
		t.Errorf("the owner: %v %s", got.err, got.result)
	}
	if got := asker.retry(long(t), "ask", asked.result, questions[0]); got.err == nil {
		t.Errorf("twice: %s", got.result)
	}

	narrow := authorized(t, url, mcp.Latest, mint(authn.Mint{Tools: []string{"f/add"}}))
	if got := narrow.do(long(t), mcp.MethodToolsCall, `{"name":"echo","arguments":{}}`, nil); got.err == nil && !strings.Contains(string(got.result), `"isError":true`) {
		t.Errorf("out of scope: %s", got.result)
	}
	for _, token := range []string{"", "usher_x_y", "usher_0011223344556677_abc", alice[:len(alice)-1], "x" + alice} {
		a := &agent{t: t, url: url, version: mcp.Latest, caps: `{}`, token: token}
		resp, _ := a.post(t.Context(), a.message(mcp.MethodToolsList, `{}`), nil)
		if resp.StatusCode != 401 || !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("token %q: %d", token, resp.StatusCode)
		}
	}
}
