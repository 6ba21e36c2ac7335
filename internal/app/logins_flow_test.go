package app

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// authServer runs a fake authorization server.
func authServer(t *testing.T, opt *fake.AuthOptions) *fake.AuthServer {
	t.Helper()
	as := fake.NewAuth(opt)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return as
}

// logBook is a log that a test reads while it is written.
type logBook struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// agentHost is a host with these environment variables, and its log.
func agentHost(t *testing.T, cfg *config.Config, env map[string]string) (*App, *logBook) {
	t.Helper()
	home, log := t.TempDir(), &logBook{}
	h, err := Open(t.Context(), &Options{
		Config: cfg, Store: vault.NewMemory(), Log: slog.New(slog.NewTextHandler(log, nil)),
		Load: config.LoadOptions{System: config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) {
			if name == "USHER_HOME" {
				return home, true
			}
			v, ok := env[name]
			return v, ok
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, log
}

// settled waits until the login of an account is in a state other than pending.
func settled(t *testing.T, h *App, server string) policy.Login {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		all, err := h.logins.ForAgents().Status(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			if l.Server == server && l.State != policy.LoginPending {
				return l
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %+v", server, all)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// An agent's login takes the way that the server or the situation asks for.
func TestAgentLoginFlow(t *testing.T) {
	ssh := map[string]string{"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}
	for _, tt := range []struct {
		name      string
		switches  []string
		grant     string
		env       map[string]string
		edit      func(*config.Gateway)
		principal string
		want      string
	}{
		{name: "on this machine", want: policy.FlowBrowser},
		{name: "the configuration wants a device code", grant: config.GrantDeviceCode, want: policy.FlowDevice},
		{name: "over SSH", env: ssh, want: policy.FlowDevice},
		{name: "over SSH without a device endpoint", env: ssh, switches: []string{"no-device"}, want: policy.FlowPaste},
		{name: "over SSH where the configuration wants a page", env: ssh, grant: config.GrantAuthorizationCode, want: policy.FlowPaste},
		{name: "over SSH with a forwarded browser", env: map[string]string{"SSH_CONNECTION": "x", "BROWSER": "helper"}, want: policy.FlowBrowser},
		{name: "through the gateway", edit: func(g *config.Gateway) { g.PublicURL = "https://usher.example.com" }, want: policy.FlowBrowser},
		{name: "another principal of a gateway", edit: func(g *config.Gateway) { g.PublicURL = "https://usher.example.com" }, principal: "eve", want: policy.FlowDevice},
		{name: "a gateway for other machines", edit: func(g *config.Gateway) { g.HTTP = "0.0.0.0:7331" }, switches: []string{"no-device"}, want: policy.FlowPaste},
		{name: "a gateway for this machine", edit: func(g *config.Gateway) { g.HTTP = "127.0.0.1:7331" }, want: policy.FlowBrowser},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as := authServer(t, &fake.AuthOptions{Switches: tt.switches})
			srv := protected(t, "notes", as)
			if tt.grant != "" {
				srv.OAuth = &config.OAuth{Grant: tt.grant}
			}
			cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{srv}}
			if tt.edit != nil {
				tt.edit(&cfg.Usher.Gateway)
			}
			h, _ := agentHost(t, cfg, tt.env)
			k := host.Key{Principal: tt.principal, Server: "notes"}
			got, err := h.logins.ForAgents().Begin(t.Context(), k)
			if err != nil || got.Flow != tt.want || got.State != policy.LoginPending || got.URL == "" || (got.Code != "") != (tt.want == policy.FlowDevice) {
				t.Fatalf("%+v, %v, want %s", got, err, tt.want)
			}
			again, err := h.logins.ForAgents().Begin(t.Context(), k)
			if err != nil || again.Handle != got.Handle || again.URL != got.URL {
				t.Errorf("a second try gives the person another login: %+v, %v", again, err)
			}
			all, err := h.logins.ForAgents().Status(t.Context(), tt.principal)
			if err != nil || len(all) != 1 || all[0].Flow != tt.want || all[0].Code != got.Code {
				t.Errorf("its status: %+v, %v", all, err)
			}
		})
	}
}

// A device login that an agent began is polled, and used once the person agreed.
func TestAgentDeviceLogin(t *testing.T) {
	as := authServer(t, &fake.AuthOptions{Interval: 1})
	srv := protected(t, "notes", as)
	srv.OAuth = &config.OAuth{Grant: config.GrantDeviceCode}
	h, _ := agentHost(t, &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{srv}}, nil)
	if _, err := h.logins.ForAgents().Begin(t.Context(), host.Key{Server: "notes"}); err != nil {
		t.Fatal(err)
	}
	as.Decide(true)
	if got := settled(t, h, "notes"); got.State != policy.LoginDone {
		t.Errorf("%+v", got)
	}
}

// A login that the person or the provider refuses stays visible, with the reason, in
// status and in the log, until one succeeds.
func TestDeniedLoginStaysVisible(t *testing.T) {
	as := authServer(t, &fake.AuthOptions{Switches: []string{"deny", "deny-words=ask your admin"}})
	h, log := agentHost(t, &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{protected(t, "notes", as)}}, nil)
	l := h.logins.ForAgents()
	for _, label := range []string{"", "work"} {
		begun, err := l.Begin(t.Context(), host.Key{Server: "notes", Account: label})
		if err != nil {
			t.Fatal(err)
		}
		back, err := as.Consent(t.Context(), begun.URL)
		if err != nil {
			t.Fatal(err)
		}
		visitPage(t, back.String())
		got := settled(t, h, config.AccountName("notes", label))
		if got.State != policy.LoginFailed || !strings.Contains(got.Reason, "access_denied: ask your admin") || strings.Contains(got.Reason, "usher login") {
			t.Errorf("%+v", got)
		}
	}
	shown, err := h.Gate().LoginStatus(t.Context(), policy.Caller{}, "notes@work")
	if err != nil || len(shown) != 1 || shown[0].State != policy.LoginFailed {
		t.Errorf("through the gate: %+v, %v", shown, err)
	}
	if other, _ := h.Gate().LoginStatus(t.Context(), policy.Caller{Principal: "eve"}, ""); len(other) != 0 {
		t.Errorf("another principal sees %+v", other)
	}
	if scoped, _ := h.Gate().LoginStatus(t.Context(), policy.Caller{Scope: policy.NewScope([]string{"other"}, nil)}, ""); len(scoped) != 0 {
		t.Errorf("outside of the scope: %+v", scoped)
	}
	if text := log.String(); !strings.Contains(text, "login failed") || !strings.Contains(text, "access_denied") || !strings.Contains(text, "server=notes@work") {
		t.Errorf("the log: %s", text)
	}
}

// A login that does not start is a failed one too.
func TestLoginThatCannotStart(t *testing.T) {
	as := authServer(t, &fake.AuthOptions{Switches: []string{"register-status=500"}})
	h, log := agentHost(t, &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{protected(t, "notes", as)}}, nil)
	for range 5 {
		if _, err := h.logins.ForAgents().Begin(t.Context(), host.Key{Server: "notes"}); err == nil {
			t.Fatal("it started")
		}
	}
	if got := settled(t, h, "notes"); got.State != policy.LoginFailed || got.Reason == "" {
		t.Errorf("%+v", got)
	}
	if n := strings.Count(log.String(), "login failed"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, log)
	}
}

// login all begins a login wherever one is needed, with the bulk driver, and nowhere
// outside of what exists for the caller.
func TestAgentLoginAll(t *testing.T) {
	as := authServer(t, nil)
	broken := authServer(t, &fake.AuthOptions{Switches: []string{"register-status=500"}})
	cfg := &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{
		protected(t, "notes", as), protected(t, "mail", as), protected(t, "broken", broken), protected(t, "hidden", as), protected(t, "known", as),
	}}
	h, _ := agentHost(t, cfg, nil)
	login(t, h, as, cfg.Servers[4])
	who := policy.Caller{Scope: policy.NewScope([]string{"notes", "mail", "broken", "known"}, nil)}
	all, err := h.Gate().Login(t.Context(), who, "all")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]policy.Login{}
	for _, one := range all.Logins {
		got[one.Server] = one
	}
	if len(got) != 3 || got["broken"].State != policy.LoginFailed || got["broken"].Reason == "" {
		t.Fatalf("%+v", all)
	}
	for _, name := range []string{"notes", "mail"} {
		if got[name].State != policy.LoginPending || got[name].Flow != policy.FlowBrowser {
			t.Fatalf("%+v", all)
		}
	}
	back, err := as.Consent(t.Context(), got["notes"].URL)
	if err != nil {
		t.Fatal(err)
	}
	visitPage(t, back.String())
	if one := settled(t, h, "notes"); one.State != policy.LoginDone {
		t.Errorf("%+v", one)
	}
	if one := settled(t, h, "broken"); one.State != policy.LoginFailed {
		t.Errorf("%+v", one)
	}
	second, err := h.Gate().Login(t.Context(), who, "all")
	if err != nil || len(second.Logins) != 2 {
		t.Fatalf("a second time: %+v, %v", second, err)
	}
	for _, one := range second.Logins {
		if one.Server == "mail" && one.Handle != got["mail"].Handle {
			t.Errorf("mail has another login: %+v", one)
		}
	}
	if p, err := h.Auth().Pendings(t.Context(), ""); err != nil || len(p) != 1 || p[0].Account.Server != "mail" {
		t.Errorf("pending: %+v, %v", p, err)
	}
}
