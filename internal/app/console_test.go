package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/status"
)

func adviceFor(s console.Server) []status.Advice { return status.Advise(&s.Server, s.RestartWindow) }

// worldOf is what a console would show of a host.
func worldOf(h *App) *consoleWorld {
	h.calls.Watch()
	w := &consoleWorld{h: h}
	h.background.Go(w.watch)
	return w
}

func rowOf(t *testing.T, w *consoleWorld, name string) console.Server {
	t.Helper()
	for _, s := range w.Servers(t.Context()) {
		if s.AccountName() == name {
			return s
		}
	}
	t.Fatalf("%s is not shown", name)
	return console.Server{}
}

// What a console shows of servers and calls is what happened to them.
func TestConsoleWorld(t *testing.T) {
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{
		{Name: "away", Transport: config.TransportHTTP, URL: "http://127.0.0.1:9/mcp"},
		{Name: "broken", Transport: config.TransportStdio, Problem: errors.New("it makes no sense")},
	}}
	cfg.Servers[0] = cfg.Servers[0].WithDefaults()
	cfg.Usher.Budgets.Total.Run = 10
	h := opened(t, cfg, "math")
	w := worldOf(h)
	if s := rowOf(t, w, "math"); s.State != host.Disconnected || adviceFor(s) != nil || s.Transport != "http" {
		t.Errorf("before: %+v", s)
	}
	if s := rowOf(t, w, "broken"); s.State != status.Broken || adviceFor(s) == nil || adviceFor(s)[0].Commands[0] != "usher list broken" {
		t.Errorf("broken: %+v", s)
	}
	if _, err := w.Call(t.Context(), "math", "add", []byte(`{"a":1,"b":2}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Call(t.Context(), "math", "fail", []byte(`{"message":"secret"}`)); err != nil {
		t.Fatal(err)
	}
	_, err := w.Call(t.Context(), "away", "x", nil)
	if p := w.Explain(err); err == nil || p.Text == "" {
		t.Errorf("%v is explained as %+v", err, p)
	}
	s := rowOf(t, w, "math")
	if s.State != host.Connected || s.LastCall.IsZero() || s.Tools == 0 || len(s.Latency) != 60 {
		t.Errorf("after: %+v", s)
	}
	if s := rowOf(t, w, "away"); s.State != host.Failed || adviceFor(s) == nil || adviceFor(s)[0].Action != status.ActionReload || !strings.Contains(s.LastError, "refused") {
		t.Errorf("away: %+v", s)
	}
	calls := w.Calls()
	if len(calls) != 3 || calls[0].Account != "away" || !calls[0].Failed || calls[1].Outcome != "tool_error" || calls[1].Arguments != "message: string(6)" || calls[2].Outcome != "ok" {
		t.Errorf("calls %+v", calls)
	}
	if b := w.Budgets(); len(b) != 1 || b[0].Run != 3 || b[0].RunLimit != 10 {
		t.Errorf("budgets %+v", b)
	}
	tools, err := w.Tools(t.Context())
	if err != nil || len(tools) == 0 || tools[0].Account != "math" {
		t.Errorf("%d tools, %v", len(tools), err)
	}
	if err := w.Reload(t.Context(), "away"); err != nil || adviceFor(rowOf(t, w, "away")) != nil {
		t.Errorf("reloaded: %v", err)
	}
}

// A tool that changed waits with its difference, and can be called once it is
// accepted.
func TestConsolePins(t *testing.T) {
	h := opened(t, &config.Config{Usher: config.DefaultSettings()}, "math")
	w := worldOf(h)
	if err := w.List(t.Context(), "math"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Call(t.Context(), "math", "mutate", nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Servers().Reload(t.Context(), "math"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Call(t.Context(), "math", "echo", nil); err == nil || w.Explain(err).Next != "usher pins diff math/echo" {
		t.Fatalf("the changed tool: %v", err)
	}
	pins, err := w.Pins(t.Context())
	if err != nil || len(pins) != 1 || pins[0].Tool != "echo" || len(pins[0].Changes) == 0 || len(pins[0].Changes[0].Lines) == 0 {
		t.Fatalf("pins %+v, %v", pins, err)
	}
	if err := w.Accept(t.Context(), "math", "echo", "another"); err == nil {
		t.Error("another definition than the shown one was accepted")
	}
	if err := w.Accept(t.Context(), "math", "echo", pins[0].Hash); err != nil {
		t.Fatal(err)
	}
	if err := w.Accept(t.Context(), "math", "echo", pins[0].Hash); err == nil {
		t.Error("accepted twice")
	}
	if _, err := w.Call(t.Context(), "math", "echo", nil); err != nil {
		t.Errorf("after: %v", err)
	}
}

// protected is a server that wants a login.
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
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: resource}.WithDefaults()
}

// Connect all: one click begins every login, and what a person consents to is used
// at once.
func TestConsoleConnects(t *testing.T) {
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{protected(t, "notes", as), protected(t, "mail", as)}}
	h := opened(t, cfg)
	w := worldOf(h)
	if w.Logins() != nil {
		t.Error("logins before the first")
	}
	_ = w.List(t.Context(), "notes") // it fails, and that is how one learns
	if s := rowOf(t, w, "notes"); s.State != host.NeedsAuth || adviceFor(s) == nil || adviceFor(s)[0].Action != status.ActionLogin {
		t.Errorf("before: %+v", s)
	}
	if err := w.Login("nobody"); err == nil {
		t.Error("a login at a server that is not there")
	}
	if err := w.Login(""); err != nil {
		t.Fatal(err)
	}
	d := w.Logins().(*bulk.Driver)
	sub := d.Subscribe()
	defer sub.Close()
	done := map[string]bool{}
	opened := map[string]bool{}
	for len(done) < 2 {
		for _, row := range d.Rows() {
			if row.Phase == bulk.PhaseConnected {
				done[row.Server] = true
			}
			if row.Login == nil || row.Phase != bulk.PhaseAwaiting || opened[row.Server] {
				continue
			}
			opened[row.Server] = true
			back, err := as.Consent(t.Context(), row.Login.AuthorizeURL)
			if err != nil {
				t.Fatal(err)
			}
			visitPage(t, back.String())
		}
		if len(done) < 2 {
			if _, _, err := sub.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Call(t.Context(), "mail", "echo", nil); err != nil {
		t.Errorf("after the login: %v", err)
	}
	accounts, err := w.Accounts(t.Context())
	if err != nil || len(accounts) != 2 || accounts[0].State != "ok" {
		t.Errorf("accounts %+v, %v", accounts, err)
	}
	if err := w.Logout(t.Context(), "mail"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Call(t.Context(), "mail", "echo", nil); w.Explain(err).Kind != "needs_login" {
		t.Errorf("after the logout: %v", err)
	}
}

func visitPage(t *testing.T, address string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// What happened to a server is remembered, newest first, and not forever.
func TestConsoleHistory(t *testing.T) {
	h := opened(t, &config.Config{Usher: config.DefaultSettings()}, "math")
	w := worldOf(h)
	for range maxMoments {
		if err := w.List(t.Context(), "math"); err != nil {
			t.Fatal(err)
		}
		if err := h.Servers().Reload(context.Background(), "math"); err != nil {
			t.Fatal(err)
		}
	}
	_ = h.Close() // ends the watch, after it has read everything
	h.background.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.history[host.Key{Server: "math"}.Shared()]
	if len(list) > maxMoments || len(list) < 3 {
		t.Errorf("%d moments", len(list))
	}
	for i := 1; i < len(list); i++ {
		if list[i].At.After(list[i-1].At) {
			t.Errorf("moment %d is out of order", i)
		}
	}
}
