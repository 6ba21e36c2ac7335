package usher_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/gateway"
	"github.com/usher-mcp/usher/gateway/authn"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
	"github.com/usher-mcp/usher/vault/keys"
)

// opened is a host without files that the test closes.
func opened(t *testing.T, edit func(*usher.Options)) *usher.Host {
	t.Helper()
	opt := usher.Ephemeral()
	if edit != nil {
		edit(opt)
	}
	h, err := usher.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// server runs a fake server that needs no login.
func server(t *testing.T, name string) (config.Server, *fake.Server) {
	t.Helper()
	f := fake.New(&fake.Options{Name: name})
	at, stop, err := f.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: at + "/mcp"}, f
}

// authServer runs a fake authorization server.
func authServer(t *testing.T) *fake.AuthServer {
	t.Helper()
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return as
}

// protected runs a fake server that requires a login at as.
func protected(t *testing.T, name string, as *fake.AuthServer) config.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	resource := "http://" + srv.Listener.Addr().String() + "/mcp"
	m := fake.New(&fake.Options{Name: name})
	srv.Config.Handler = as.Protect(&fake.Protected{Resource: resource}, m.Handler())
	srv.Start()
	t.Cleanup(func() {
		m.Close()
		srv.Close()
	})
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: resource}
}

// spawned adds servers; those with a command are started by the first call.
func spawned(t *testing.T, h *usher.Host, servers ...config.Server) {
	t.Helper()
	for _, srv := range servers {
		if err := h.Spawn(t.Context(), srv, &host.SpawnOptions{Lazy: srv.Command != ""}); err != nil {
			t.Fatal(err)
		}
	}
}

// consent is the user's browser: it opens a consent page and returns the address to
// which that redirects, without following it.
func consent(t *testing.T, page string) *url.URL {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer c.CloseIdleConnections()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return to
}

// An ephemeral host writes nothing to disk, nor does one with a sealed store in memory.
func TestEphemeralWritesNothing(t *testing.T) {
	for name, store := range map[string]func() vault.Store{
		"memory": func() vault.Store { return vault.NewMemory() },
		"sealed": func() vault.Store {
			m := vault.NewMemory()
			key := func(string) (string, bool) { return strings.Repeat("0f", 32), true }
			return keys.Sealed(m, keys.New(m, keys.Options{Setting: "env:KEY", Env: key}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, v := range []string{"HOME", "TMPDIR", "USHER_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
				t.Setenv(v, filepath.Join(dir, v))
				if err := os.Mkdir(filepath.Join(dir, v), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			used, _ := server(t, "math")
			opt := usher.Ephemeral()
			opt.Store, opt.Executable = store(), usher.Executable()
			h, err := usher.Open(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			spawned(t, h, used, config.Server{Name: "child", Command: "sh", Args: []string{"-c", "echo a line >&2; exit 3"}})
			spawned(t, h, protected(t, "notes", authServer(t)))
			if _, err := h.Call(t.Context(), "math", "add", []byte(`{"a":1,"b":2}`), nil); err != nil {
				t.Error(err)
			}
			if _, err := h.Call(t.Context(), "child", "x", nil, nil); err == nil {
				t.Error("a child that exits answered")
			}
			l, err := h.Login(t.Context(), "notes", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Complete(t.Context(), consent(t, l.URL).String()); err != nil {
				t.Error(err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
				if !d.IsDir() || filepath.Dir(filepath.Dir(path)) == dir {
					t.Errorf("%s was written", path)
				}
				return nil
			})
		})
	}
}

func TestCallProgressAndAnswer(t *testing.T) {
	h := opened(t, func(o *usher.Options) { o.Capabilities = []byte(`{"elicitation":{}}`) })
	math, _ := server(t, "math")
	spawned(t, h, math)
	var steps int
	_, err := h.Call(t.Context(), "math", "slow", []byte(`{"ms":1,"steps":3}`), &usher.CallOptions{OnNotification: func(m mcp.Message) {
		if m.Method == mcp.MethodNotifyProgress {
			steps++
		}
	}})
	if err != nil || steps != 3 {
		t.Errorf("%d steps, %v", steps, err)
	}
	raw, err := h.Call(t.Context(), "math", "ask", nil, &usher.CallOptions{
		Answer: func(_ context.Context, method string, _ []byte) ([]byte, *mcp.Error) {
			if method != mcp.MethodElicit {
				return nil, mcp.Errorf(mcp.CodeMethodNotFound, "not %s", method)
			}
			return []byte(`{"action":"accept","content":{"name":"Ada"}}`), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := usher.ParseResult(raw)
	if err != nil || r.IsError || !strings.Contains(r.Text(), "Ada") || !json.Valid(r.StructuredContent) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestParseResult(t *testing.T) {
	r, err := usher.ParseResult([]byte(`{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"aGk="},{"type":"text","text":"b"}],"isError":true}`))
	if err != nil || !r.IsError || r.Text() != "a\nb" || string(r.Content[1].Data) != "hi" || r.Content[1].MIMEType != "image/png" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := usher.ParseResult([]byte(`[]`)); err == nil {
		t.Error("an array was taken for a result")
	}
}

func TestReplaceAndRemove(t *testing.T) {
	h := opened(t, nil)
	first, _ := server(t, "math")
	second, _ := server(t, "math")
	spawned(t, h, first)
	err := h.Spawn(t.Context(), second, nil)
	if info, ok := usher.ErrorInfo(err); !ok || info.Kind != usher.KindExists {
		t.Errorf("%+v, %v", info, err)
	}
	if err := h.Replace(t.Context(), second, nil); err != nil {
		t.Error(err)
	}
	if err := h.Remove("math"); err != nil || len(h.Status().Servers) != 0 {
		t.Errorf("%v, %+v", err, h.Status())
	}
}

func TestEventsAndHook(t *testing.T) {
	h := opened(t, nil)
	events := h.Events(0)
	math, _ := server(t, "math")
	spawned(t, h, math)
	h.SetHook(func(_ context.Context, r policy.HookRequest) policy.Decision {
		return policy.Decision{Allow: !strings.Contains(string(r.Arguments), "13"), Reason: "no thirteen"}
	})
	if _, err := h.Call(t.Context(), "math", "add", []byte(`{"a":1,"b":2}`), nil); err != nil {
		t.Error(err)
	}
	_, err := h.Call(t.Context(), "math", "add", []byte(`{"a":13,"b":2}`), nil)
	if info, _ := usher.ErrorInfo(err); info.Kind != usher.KindDenied || !strings.Contains(info.Text, "no thirteen") || info.Server != "math" {
		t.Errorf("%+v, %v", info, err)
	}
	var connected, called bool
	for !connected || !called {
		e, _, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case event.ServerChanged:
			connected = connected || e.To == string(host.Connected)
		case event.CallFinished:
			called = called || e.Tool == "add"
		}
	}
}

// One login: begun, completed by its state from a page of the program's own, used.
func TestLogin(t *testing.T) {
	h := opened(t, nil)
	spawned(t, h, protected(t, "notes", authServer(t)))
	_, err := h.Call(t.Context(), "notes", "echo", nil, nil)
	if info, _ := usher.ErrorInfo(err); info.Kind != usher.KindNeedsLogin || info.Server != "notes" {
		t.Errorf("%+v, %v", info, err)
	}
	l, err := h.Login(t.Context(), "notes", &usher.LoginOptions{Redirect: "http://127.0.0.1:9/callback"})
	if err != nil {
		t.Fatal(err)
	}
	back := consent(t, l.URL)
	if back.Path != "/callback" || back.Query().Get("state") != l.State {
		t.Errorf("redirected to %s", back)
	}
	if _, err := h.CompleteLogin(t.Context(), back.Query()); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := h.Call(t.Context(), "notes", "echo", nil, nil); err != nil {
		t.Error(err)
	}
	if _, err := h.Logout(t.Context(), "notes"); err != nil {
		t.Error(err)
	}
}

func TestLoginCancelled(t *testing.T) {
	h := opened(t, nil)
	spawned(t, h, protected(t, "notes", authServer(t)))
	l, err := h.Login(t.Context(), "notes", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(t.Context()); err == nil {
		t.Error("a cancelled login succeeded")
	}
}

// Many logins with an interface of the program's own.
func TestLoginAll(t *testing.T) {
	as := authServer(t)
	h := opened(t, nil)
	names := []string{"mail", "notes", "wiki"}
	for _, name := range names {
		spawned(t, h, protected(t, name, as))
	}
	all, err := h.LoginAll(t.Context(), nil, &usher.LoginOptions{Redirect: "http://127.0.0.1:9/callback"})
	if err != nil {
		t.Fatal(err)
	}
	phases := map[string]bulk.Phase{}
	for len(phases) < len(names) {
		e, _, err := all.Events().Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Phase == bulk.PhaseAwaiting {
			answerRow(t, all, e.Server)
		}
		if e.Phase.Ended() {
			phases[e.Server] = e.Phase
		}
	}
	if err := all.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := all.Close(); err != nil {
		t.Error(err)
	}
	for name, phase := range phases {
		_, err := h.Call(t.Context(), name, "echo", nil, nil)
		if wiki := name == "wiki"; (err != nil) != wiki || (phase == bulk.PhaseConnected) == wiki {
			t.Errorf("%s: %s, %v", name, phase, err)
		}
	}
}

// answerRow completes the login of a server by its state; that of the wiki is cancelled.
func answerRow(t *testing.T, all *usher.Logins, server string) {
	t.Helper()
	for _, row := range all.Rows() {
		if row.Server != server || row.Login == nil {
			continue
		}
		if server == "wiki" {
			if err := all.Cancel(t.Context(), row.Login.State); err != nil {
				t.Error(err)
			}
			continue
		}
		q := consent(t, row.Login.AuthorizeURL).Query()
		if err := all.Complete(t.Context(), q.Get("state"), q.Get("code"), q.Get("iss")); err != nil {
			t.Error(err)
		}
	}
}

// byName lets clients in by a header, as an authenticator of the program's own.
type byName struct{}

func (byName) Authenticate(_ context.Context, r *http.Request) (authn.Identity, error) {
	if name := r.Header.Get("X-User"); name != "" {
		return authn.Identity{Principal: name, Credential: name}, nil
	}
	return authn.Identity{}, &authn.RefusedError{Reason: "who are you?"}
}

func TestGatewayInMux(t *testing.T) {
	h := opened(t, nil)
	math, _ := server(t, "math")
	spawned(t, h, math)
	g := h.Gateway(&gateway.Options{Auth: byName{}, Hosts: []string{"tools.example"}})
	defer g.Close()
	mux := http.NewServeMux()
	mux.Handle("/ai/", http.StripPrefix("/ai", g.Handler()))
	for _, tt := range []struct {
		user, host string
		want       int
	}{
		{"ada", "tools.example", http.StatusOK},
		{"", "tools.example", http.StatusUnauthorized},
		{"ada", "other.example", http.StatusMisdirectedRequest},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+tt.host+"/ai/direct/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("X-User", tt.user)
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, req)
		if rec.Code != tt.want {
			t.Errorf("%+v: %d %s", tt, rec.Code, rec.Body)
		}
	}
}
