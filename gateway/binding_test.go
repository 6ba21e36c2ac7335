package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/authn/authntest"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// strangers are tokens of the same principal that must not use what the first one
// opened.
func strangers(t *testing.T, tokens *authn.Tokens) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, m := range map[string]authn.Mint{
		"owner": {}, "narrow by server": {Servers: []string{"a"}}, "narrow by tool": {Tools: []string{"a/b"}}, "as wide": {},
	} {
		text, _, err := tokens.Mint(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = text
	}
	return out
}

// The id of a session of one token is nothing to another one, in each way to use it
// and at each replica.
func TestSessionIsBoundToItsToken(t *testing.T) {
	tokens := authn.NewTokens(authntest.NewStore())
	all := replicasWith(t, 2, &script{}, tokens)
	who := strangers(t, tokens)
	_, head, _ := all[0].ask(t, "POST", initializeV25, "Authorization", "Bearer "+who["owner"])
	session := head.Get(wire.HeaderSession)
	for name, token := range who {
		for i, r := range all {
			for what, req := range map[string][2]string{
				"a request": {"POST", callX}, "a notification": {"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
				"a batch": {"POST", "[" + callX + "]"}, "the stream": {"GET", ""}, "its end": {"DELETE", ""},
			} {
				if name == "owner" {
					continue
				}
				if status, _, text := r.ask(t, req[0], req[1], "Authorization", "Bearer "+token, wire.HeaderSession, session); status != http.StatusNotFound {
					t.Errorf("%s of a token that is %s at replica %d: %d %s", what, name, i, status, text)
				}
			}
		}
	}
	for i, r := range all {
		if status, _, text := r.ask(t, "POST", callX, "Authorization", "Bearer "+who["owner"], wire.HeaderSession, session); status != http.StatusOK {
			t.Errorf("the owner at replica %d: %d %s", i, status, text)
		}
	}
}

// Neither is the address that the transport of 2024-11-05 posts to.
func TestOldSessionIsBoundToItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := authn.NewTokens(authntest.NewStore())
		g := New(&script{}, &Options{Auth: tokens})
		defer g.Close()
		who := strangers(t, tokens)
		go asWith(t, g.Handler(), who["owner"], "GET", "/mcp", "")
		synctest.Wait()
		g.sessions.mu.Lock()
		id := ""
		for id = range g.sessions.all {
		}
		g.sessions.mu.Unlock()
		for name, token := range who {
			want := http.StatusNotFound
			if name == "owner" {
				want = http.StatusAccepted
			}
			if w := asWith(t, g.Handler(), token, "POST", "/mcp?sessionId="+id, initializeV25); w.Code != want {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		synctest.Wait()
	})
}

// The state of a suspended call is of use to its own token only.
func TestSuspendedCallIsBoundToItsToken(t *testing.T) {
	tokens := authn.NewTokens(authntest.NewStore())
	ended := make(chan error, 8)
	all := replicasWith(t, 2, asking(ended), tokens)
	who := strangers(t, tokens)
	call := func(r replica, token, more string) []byte {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}%s,%s}}`, more, askMeta)
		_, _, text := r.ask(t, "POST", body, "Authorization", "Bearer "+token,
			wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, mcp.MethodToolsCall, wire.HeaderName, "x")
		return last(text)
	}
	state := string(member(result(t, call(all[0], who["owner"], "")), "requestState"))
	for name, token := range who {
		for i, r := range all {
			if name == "owner" {
				continue
			}
			got := call(r, token, `,"inputResponses":{"q1":{"v":"1"},"q2":{"v":"1"}},"requestState":`+state)
			if errorCode(got) != mcp.CodeInvalidParams {
				t.Errorf("%s at replica %d: %s", name, i, got)
			}
		}
	}
	got := call(all[1], who["owner"], `,"inputResponses":{"q1":{"v":"1"},"q2":{"v":"1"}},"requestState":`+state)
	if !strings.Contains(string(got), `"message":"c"`) {
		t.Errorf("the owner: %s", got)
	}
}

// A client that refreshes its access token keeps its session, also when it notices
// that the token has expired by a refused request. Other clients of the same user,
// and tokens of another scope, do not get it.
func TestSessionOutlivesARefresh(t *testing.T) {
	i := authntest.NewIssuer(t)
	auth, err := authn.NewOIDC(authn.OIDCOptions{Issuer: i.URL, URL: "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	g := New(&script{}, &Options{Auth: auth})
	defer g.Close()
	token := func(client, scope string, ttl time.Duration) string {
		return i.Token(t, "RS256", map[string]any{
			"iss": i.URL, "sub": "ada", "aud": "http://localhost", "client_id": client, "scope": scope,
			"iat": time.Now().Unix(), "exp": time.Now().Add(ttl).Unix(), "jti": fmt.Sprint(client, scope, ttl),
		})
	}
	session := helloAs(t, g.Handler(), token("one", "a b", time.Hour), mcp.LatestLegacy)
	ping := func(token string) int {
		return asWith(t, g.Handler(), token, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, wire.HeaderSession, session).Code
	}
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"the same client, refreshed":  {token("one", "a b", 2*time.Hour), http.StatusOK},
		"the scopes in another order": {token("one", "b a", 2*time.Hour), http.StatusOK},
		"another client":              {token("two", "a b", time.Hour), http.StatusNotFound},
		"a narrower scope":            {token("one", "a", time.Hour), http.StatusNotFound},
		"an expired one":              {token("one", "a b", -time.Hour), http.StatusUnauthorized},
	} {
		if got := ping(tt.token); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// A stream that one replica passes on from another ends at both when its token is
// revoked.
func TestForwardedStreamEndsWithItsToken(t *testing.T) {
	tokens := authn.NewTokens(authntest.NewStore())
	all := replicasWith(t, 2, &script{}, tokens)
	text, token, err := tokens.Mint(t.Context(), authn.Mint{})
	if err != nil {
		t.Fatal(err)
	}
	_, head, _ := all[0].ask(t, "POST", initializeV25, "Authorization", "Bearer "+text)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, all[1].URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Accept": "text/event-stream", "Authorization": "Bearer " + text, wire.HeaderSession: head.Get(wire.HeaderSession)} {
		req.Header.Set(k, v)
	}
	res, err := all[1].Client().Do(req)
	if err != nil || res.StatusCode != http.StatusOK || all[1].g.Stats().Forwarded != 1 {
		t.Fatal(err, res)
	}
	defer func() { _ = res.Body.Close() }()
	if err := tokens.Revoke(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body) // until it ends, in whichever way
	if ctx.Err() != nil {
		t.Error("the stream goes on")
	}
}

// Which arguments of a tool travel in headers is no news for a token that does not see
// the tool, although another client has read the list.
func TestHeadersOfToolsOutsideTheScope(t *testing.T) {
	view := &script{do: func(_ context.Context, a surface.Agent, r mcp.Request) ([]byte, error) {
		switch {
		case r.Method != mcp.MethodToolsList:
			return []byte(`{"content":[]}`), nil
		case len(a.Tools) > 0 || a.Principal == "eve":
			return []byte(`{"tools":[]}`), nil
		}
		return []byte(`{"tools":[{"name":"secret","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`), nil
	}}
	tokens := authn.NewTokens(authntest.NewStore())
	g := New(view, &Options{Auth: tokens})
	defer g.Close()
	call := func(m authn.Mint, method, params string, more ...string) string {
		text, _, err := tokens.Mint(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + goodMeta + `}}`
		return asWith(t, g.Handler(), text, "POST", "/mcp", body, append(more, wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, method)...).Body.String()
	}
	call(authn.Mint{}, mcp.MethodToolsList, `"cursor":"x",`)
	const secret = `"name":"secret","arguments":{"region":"x"},`
	if got := call(authn.Mint{}, mcp.MethodToolsCall, secret, wire.HeaderName, "secret"); !strings.Contains(got, "Region") {
		t.Fatalf("the header is not asked for: %s", got)
	}
	if got := call(authn.Mint{Tools: []string{"a/b"}}, mcp.MethodToolsCall, secret, wire.HeaderName, "secret"); strings.Contains(got, "Region") {
		t.Errorf("a narrow token hears of the header: %s", got)
	}
	if got := call(authn.Mint{Principal: "eve"}, mcp.MethodToolsCall, secret, wire.HeaderName, "secret"); strings.Contains(got, "Region") {
		t.Errorf("another principal hears of the header: %s", got)
	}
}

// replicasWith is replicas that authenticate.
func replicasWith(t *testing.T, n int, view Endpoints, auth authn.Authenticator) []replica {
	t.Helper()
	return replicasOf(t, n, view, Options{Key: bytes.Repeat([]byte{7}, sealKeyLen), Auth: auth})
}
