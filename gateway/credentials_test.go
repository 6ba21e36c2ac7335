package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/gateway/authn/authntest"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// waiting is a view whose calls run until they are cancelled; it counts them. The
// tool "stream" sends progress first and "ask" asks the client something.
type waiting struct {
	*script
	running atomic.Int64
	stop    chan struct{} // closed to end what was not cancelled
}

func newWaiting() *waiting {
	v := &waiting{script: &script{}, stop: make(chan struct{})}
	v.do = func(ctx context.Context, _ surface.Agent, r mcp.Request) ([]byte, error) {
		v.running.Add(1)
		defer v.running.Add(-1)
		switch p, _ := mcp.ReadParams(r.Params); p.Name {
		case "stream":
			r.OnNotification(mcp.Message{Method: mcp.MethodNotifyProgress, Params: []byte(`{"progressToken":1,"progress":1}`)})
		case "ask":
			_, _ = r.OnRequest(ctx, mcp.MethodElicit, []byte(`{"message":"who"}`))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-v.stop:
			return nil, errScript
		}
	}
	return v
}

func (v *waiting) Auto() (surface.View, surface.Explanation) { return v, surface.Explanation{} }

// asWith is send with a bearer token.
func asWith(t *testing.T, h http.Handler, token, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return send(t, h, method, path, body, append(headers, "Authorization", "Bearer "+token)...)
}

// helloAs begins a session of a protocol version with a token.
func helloAs(t *testing.T, h http.Handler, token, version string) string {
	t.Helper()
	w := asWith(t, h, token, "POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},"clientInfo":{}}}`, version))
	id := w.Header().Get(wire.HeaderSession)
	if id == "" {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return id
}

const legacyCallOf = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":{}}}`

// modernCallOf is a stateless request and the headers that go with it.
func modernCallOf(method, name, meta string) (body string, headers []string) {
	headers = []string{wire.HeaderVersion, mcp.Latest, wire.HeaderMethod, method}
	params := `"notifications":{"toolsListChanged":true}`
	if name != "" {
		headers = append(headers, wire.HeaderName, name)
		params = `"name":"` + name + `","arguments":{}`
	}
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + `,` + meta + `}}`, headers
}

// openings are all ways to hold something open at a gateway. Each returns when what
// it opened has ended.
func openings() map[string]func(t *testing.T, h http.Handler, token string) {
	legacy := func(tool string) func(*testing.T, http.Handler, string) {
		return func(t *testing.T, h http.Handler, token string) {
			asWith(t, h, token, "POST", "/mcp", fmt.Sprintf(legacyCallOf, tool), wire.HeaderSession, helloAs(t, h, token, mcp.LatestLegacy))
		}
	}
	modern := func(method, tool, meta string) func(*testing.T, http.Handler, string) {
		return func(t *testing.T, h http.Handler, token string) {
			body, headers := modernCallOf(method, tool, meta)
			asWith(t, h, token, "POST", "/mcp", body, headers...)
		}
	}
	return map[string]func(t *testing.T, h http.Handler, token string){
		"the stream of a session": func(t *testing.T, h http.Handler, token string) {
			asWith(t, h, token, "GET", "/mcp", "", wire.HeaderSession, helloAs(t, h, token, mcp.LatestLegacy))
		},
		"the stream of the 2024-11-05 transport": func(t *testing.T, h http.Handler, token string) {
			asWith(t, h, token, "GET", "/mcp", "")
		},
		"subscriptions/listen":              modern(mcp.MethodListen, "", goodMeta),
		"a stateless call":                  modern(mcp.MethodToolsCall, "wait", goodMeta),
		"a stateless call that streams":     modern(mcp.MethodToolsCall, "stream", goodMeta),
		"a stateless call that may suspend": modern(mcp.MethodToolsCall, "wait", askMeta),
		"a suspended call":                  modern(mcp.MethodToolsCall, "ask", askMeta),
		"a legacy call":                     legacy("wait"),
		"a legacy call that streams":        legacy("stream"),
		"a legacy call that asks":           legacy("ask"),
		"an idle session": func(t *testing.T, h http.Handler, token string) {
			helloAs(t, h, token, mcp.LatestLegacy)
		},
		"a batch": func(t *testing.T, h http.Handler, token string) {
			body := "[" + fmt.Sprintf(legacyCallOf, "wait") + "," + strings.Replace(fmt.Sprintf(legacyCallOf, "wait"), `"id":7`, `"id":8`, 1) + "]"
			asWith(t, h, token, "POST", "/mcp", body, wire.HeaderSession, helloAs(t, h, token, mcp.V20250326))
		},
		"a resumed stream": func(t *testing.T, h http.Handler, token string) {
			id := helloAs(t, h, token, mcp.LatestLegacy)
			done := make(chan struct{})
			go func() {
				defer close(done)
				asWith(t, h, token, "POST", "/mcp", fmt.Sprintf(legacyCallOf, "stream"), wire.HeaderSession, id)
			}()
			time.Sleep(time.Second)
			asWith(t, h, token, "GET", "/mcp", "", wire.HeaderSession, id, wire.HeaderLastEvent, "1-0")
			<-done
		},
	}
}

// checkEnds opens everything there is with a token, ends the token ten seconds later,
// and finds nothing left at any of the gateways within the given time.
func checkEnds(t *testing.T, mint authn.Mint, gateways int, end func(store *authntest.Store, id string), within time.Duration) {
	for name, open := range openings() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := authntest.NewStore()
				text, token, err := authn.NewTokens(store).Mint(t.Context(), mint)
				if err != nil {
					t.Fatal(err)
				}
				views := make([]*waiting, gateways)
				all := make([]*Gateway, gateways)
				ended := make(chan struct{}, gateways)
				for i := range all {
					views[i] = newWaiting()
					all[i] = New(views[i], &Options{Auth: authn.NewTokens(store)})
					defer all[i].Close()
					defer close(views[i].stop)
					go func() {
						open(t, all[i].Handler(), text)
						ended <- struct{}{}
					}()
				}
				synctest.Wait()
				time.Sleep(10 * time.Second)
				end(store, token.ID)
				time.Sleep(within)
				synctest.Wait()
				if n := len(ended); n != gateways {
					t.Errorf("%d of %d are still open", gateways-n, gateways)
				}
				for i, g := range all {
					if s := g.Stats(); s.Sessions != 0 || s.Waiting != 0 || views[i].running.Load() != 0 {
						t.Errorf("gateway %d still has %d sessions, %d suspended and %d running calls", i, s.Sessions, s.Waiting, views[i].running.Load())
					}
				}
			})
		})
	}
}

// A token that another process revokes takes with it all that was opened with it, at
// every gateway, within a second.
func TestRevokedTokenEndsWhatItOpened(t *testing.T) {
	checkEnds(t, authn.Mint{}, 2, func(store *authntest.Store, id string) { _, _ = store.Remove(context.Background(), id) }, time.Second)
}

// A token that expires does so too.
func TestExpiredTokenEndsWhatItOpened(t *testing.T) {
	checkEnds(t, authn.Mint{TTL: time.Minute}, 1, func(*authntest.Store, string) {}, 51*time.Second)
}

// What was opened with another token of the same principal goes on.
func TestRevokedTokenEndsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := authntest.NewStore()
		g := New(newWaiting(), &Options{Auth: authn.NewTokens(store)})
		defer g.Close()
		kept, _, _ := authn.NewTokens(store).Mint(t.Context(), authn.Mint{})
		gone, token, _ := authn.NewTokens(store).Mint(t.Context(), authn.Mint{})
		for _, text := range []string{kept, gone} {
			id := helloAs(t, g.Handler(), text, mcp.LatestLegacy)
			go asWith(t, g.Handler(), text, "GET", "/mcp", "", wire.HeaderSession, id)
		}
		synctest.Wait()
		_, _ = store.Remove(t.Context(), token.ID)
		time.Sleep(time.Hour)
		if n := g.Stats().Sessions; n != 1 {
			t.Errorf("%d sessions are left", n)
		}
		if w := asWith(t, g.Handler(), gone, "POST", "/mcp", initializeV25); w.Code != http.StatusUnauthorized {
			t.Errorf("the revoked token: %d", w.Code)
		}
	})
}

// The store is asked once for all sessions, however many there are, and not at all
// while no token is in use.
func TestRevocationsAreAskedForOnce(t *testing.T) {
	reads := func(sessions int) int {
		n := 0
		synctest.Test(t, func(t *testing.T) {
			store := authntest.NewStore()
			g := New(newWaiting(), &Options{Auth: authn.NewTokens(store)})
			defer g.Close()
			text, _, _ := authn.NewTokens(store).Mint(t.Context(), authn.Mint{})
			for range sessions {
				helloAs(t, g.Handler(), text, mcp.LatestLegacy)
			}
			before := store.Reads()
			time.Sleep(time.Minute + 250*time.Millisecond) // between two polls
			n = store.Reads() - before
			g.sessions.closeAll()
			time.Sleep(time.Minute)
			before = store.Reads()
			time.Sleep(time.Minute)
			if again := store.Reads() - before; again != 0 {
				t.Errorf("asked %d times without a session", again)
			}
		})
		return n
	}
	one, many := reads(1), reads(500)
	if one != many || one < 60 || one > 240 {
		t.Errorf("a minute with one session asks %d times, one with 500 asks %d times", one, many)
	}
}

// fixed authenticates everybody as the identity it holds.
type fixed struct{ atomic.Pointer[authn.Identity] }

func (f *fixed) Authenticate(context.Context, *http.Request) (authn.Identity, error) {
	return *f.Load(), nil
}

// An access token that expires ends streams and calls at once. The session waits some
// minutes for the refreshed token, and then ends too.
func TestExpiredAccessTokenKeepsTheSessionForARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth, view := &fixed{}, newWaiting()
		set := func(d time.Duration) {
			auth.Store(&authn.Identity{Principal: "ada", Credential: "jwt:1", Expires: time.Now().Add(d), Refreshable: true})
		}
		set(time.Minute)
		g := New(view, &Options{Auth: auth, SessionIdle: 24 * time.Hour})
		defer g.Close()
		defer close(view.stop)
		h := g.Handler()
		id := hello(t, h)
		ended := make(chan int, 2)
		for _, req := range [][2]string{{"GET", ""}, {"POST", fmt.Sprintf(legacyCallOf, "wait")}} {
			go func() { ended <- send(t, h, req[0], "/mcp", req[1], wire.HeaderSession, id).Code }()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(ended); n != 2 || view.running.Load() != 0 {
			t.Errorf("%d of a stream and a call have ended", n)
		}
		set(time.Minute)
		time.Sleep(time.Minute - time.Second)
		if code := pinged(t, h, id); code != http.StatusOK {
			t.Errorf("after a refresh: %d", code)
		}
		set(time.Hour)
		time.Sleep(refreshGrace + 2*time.Second)
		if code := pinged(t, h, id); code != http.StatusNotFound {
			t.Errorf("long after the token expired: %d", code)
		}
		if n := g.Stats().Sessions; n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// A stream ends with the token that opened it, although the same client has a newer
// one by now: a stolen token is of no use for longer than it lasts.
func TestStreamEndsWithItsOwnToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := &fixed{}
		set := func(d time.Duration) {
			auth.Store(&authn.Identity{Principal: "ada", Credential: "jwt:1", Expires: time.Now().Add(d), Refreshable: true})
		}
		set(time.Minute)
		g := New(newWaiting(), &Options{Auth: auth})
		defer g.Close()
		id := hello(t, g.Handler())
		ended := make(chan int, 1)
		go func() { ended <- send(t, g.Handler(), "GET", "/mcp", "", wire.HeaderSession, id).Code }()
		synctest.Wait()
		set(time.Hour)
		pinged(t, g.Handler(), id)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if len(ended) != 1 {
			t.Error("the stream goes on")
		}
		if code := pinged(t, g.Handler(), id); code != http.StatusOK {
			t.Errorf("the session: %d", code)
		}
	})
}

// A request that is in flight when its token is revoked is answered with 401.
func TestRevokedInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth, view := &fixed{}, newWaiting()
		auth.Store(&authn.Identity{Principal: "ada", Credential: "x"})
		g := New(view, &Options{Auth: auth})
		defer g.Close()
		defer close(view.stop)
		h := g.Handler()
		codes := make(chan int, 2)
		modern, headers := modernCallOf(mcp.MethodToolsCall, "wait", goodMeta)
		go func() { codes <- send(t, h, "POST", "/mcp", modern, headers...).Code }()
		id := hello(t, h)
		go func() {
			codes <- send(t, h, "POST", "/mcp", fmt.Sprintf(legacyCallOf, "wait"), wire.HeaderSession, id).Code
		}()
		synctest.Wait()
		g.revoke("x")
		for range 2 {
			if code := <-codes; code != http.StatusUnauthorized {
				t.Errorf("%d", code)
			}
		}
		if code := send(t, h, "POST", "/mcp", modern, headers...).Code; code != http.StatusUnauthorized {
			t.Errorf("an authenticator that still accepts it: %d", code)
		}
	})
}

// While the store is away open sessions go on for as long as new requests of the same
// token do, and no longer.
func TestSessionsWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := authntest.NewStore()
		g := New(newWaiting(), &Options{Auth: authn.NewTokens(store), SessionIdle: 24 * time.Hour})
		defer g.Close()
		text, _, err := authn.NewTokens(store).Mint(t.Context(), authn.Mint{})
		if err != nil {
			t.Fatal(err)
		}
		helloAs(t, g.Handler(), text, mcp.LatestLegacy)
		store.Lock()
		store.Fail = errors.New("away")
		store.Unlock()
		time.Sleep(time.Hour - time.Minute)
		if n := g.Stats().Sessions; n != 1 {
			t.Errorf("%d sessions after 59 minutes", n)
		}
		time.Sleep(2 * time.Minute)
		if n := g.Stats().Sessions; n != 0 {
			t.Errorf("%d sessions after 61 minutes", n)
		}
	})
}

func TestOAuthMetadata(t *testing.T) {
	auth, err := authn.NewOIDC(authn.OIDCOptions{Issuer: "https://login.example.com", URL: "https://example.com/usher", Scopes: []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	g := New(emptyEndpoints{}, &Options{Auth: authn.AnyOf{authn.NewTokens(authntest.NewStore()), auth}})
	defer g.Close()
	for path, resource := range map[string]string{
		"/usher/mcp": "https://example.com/usher/mcp", "/usher/servers/a/mcp": "https://example.com/usher/servers/a/mcp",
		"/mcp": "https://example.com/usher/mcp", "": "https://example.com/usher", "/usher": "https://example.com/usher",
	} {
		w := send(t, g.Handler(), "GET", authn.MetadataPath+path, "")
		want := `{"resource":"` + resource + `","authorization_servers":["https://login.example.com"],"scopes_supported":["mcp"],"bearer_methods_supported":["header"],"resource_name":"usher"}`
		if w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := send(t, g.Handler(), "GET", authn.MetadataPath+"/etc/passwd", ""); w.Code != 404 {
		t.Errorf("any path: %d", w.Code)
	}
	r := httptest.NewRequest("GET", authn.MetadataPath+"/mcp", nil)
	r.Host = "example.com"
	named := httptest.NewRecorder()
	if g.Handler().ServeHTTP(named, r); named.Code != 200 {
		t.Errorf("under its own name: %d", named.Code)
	}
	w := send(t, g.Handler(), "POST", "/servers/a/mcp", `{}`)
	if w.Code != 401 || !strings.Contains(w.Header().Get("WWW-Authenticate"), `resource_metadata="https://example.com/.well-known/oauth-protected-resource/usher/servers/a/mcp"`) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, bad := range []authn.OIDCOptions{{}, {Issuer: "https://a"}, {Issuer: "x", URL: "https://a"}, {Issuer: "ftp://a", URL: "https://a"}, {Issuer: "https://a", URL: "https://b?c"}} {
		if _, err := authn.NewOIDC(bad); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

// An error that is not a refusal is a failure of the gateway: the client gets 503.
func TestAuthenticationUnavailable(t *testing.T) {
	store := authntest.NewStore()
	text, _, err := authn.NewTokens(store).Mint(t.Context(), authn.Mint{})
	if err != nil {
		t.Fatal(err)
	}
	store.Fail = errors.New("away")
	g := New(emptyEndpoints{}, &Options{Auth: authn.NewTokens(store)})
	defer g.Close()
	if w := send(t, g.Handler(), "POST", "/mcp", `{}`, "Authorization", "Bearer "+text); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
