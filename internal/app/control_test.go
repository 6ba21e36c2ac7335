package app

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/control"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/status"
	"github.com/usher-mcp/usher/vault"
)

// opened returns a host with a home of its own and the given servers, each a fake
// that runs in this process.
func opened(t *testing.T, cfg *config.Config, servers ...string) *App {
	t.Helper()
	return openedOn(t, vault.NewMemory(), cfg, servers...)
}

// openedOn is opened with a store that others may use too.
func openedOn(t *testing.T, store vault.Store, cfg *config.Config, servers ...string) *App {
	t.Helper()
	return openedAs(t, vault.Local, store, cfg, servers...)
}

// openedAs is openedOn for a principal.
func openedAs(t *testing.T, principal string, store vault.Store, cfg *config.Config, servers ...string) *App {
	t.Helper()
	home := t.TempDir()
	for _, name := range servers {
		url, stop, err := fake.New(&fake.Options{Name: name}).Listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		srv := config.Server{Name: name, Transport: config.TransportHTTP, URL: url + "/mcp", KeepAlive: time.Minute}
		cfg.Servers = append(cfg.Servers, srv.WithDefaults())
	}
	h, err := Open(t.Context(), &Options{
		Config: cfg, Store: store, Principal: principal,
		Load: config.LoadOptions{System: config.System{Home: home, Workdir: home, LookupEnv: func(name string) (string, bool) {
			return home, name == "USHER_HOME"
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
	return h
}

// steered serves the control socket of h and returns how others see it.
func steered(t *testing.T, h *App) (control.Peer, io.Closer) {
	t.Helper()
	c, err := h.Frontend().ServeControl()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	peers, err := control.Peers(t.Context(), h.dirs.Run)
	if err != nil || len(peers) != 1 || peers[0].PID != os.Getpid() {
		t.Fatalf("peers %v, %v; want this process", peers, err)
	}
	return peers[0], c
}

func ask(t *testing.T, p control.Peer, method, path string) (string, error) {
	t.Helper()
	resp, err := p.Do(t.Context(), method, path)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), nil
}

func reportOf(t *testing.T, p control.Peer) status.Report {
	t.Helper()
	body, err := ask(t, p, http.MethodGet, "/status")
	if err != nil {
		t.Fatal(err)
	}
	var r status.Report
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestControlReportsAndSteers(t *testing.T) {
	cfg := &config.Config{Usher: config.Settings{Budgets: config.Budgets{Servers: map[string]config.Budget{"math": {Run: 10}}}}}
	h := opened(t, cfg, "idle", "math")
	peer, _ := steered(t, h)
	if _, err := h.Call(t.Context(), "math", "add", []byte(`{"a":1,"b":2}`), nil); err != nil {
		t.Fatal(err)
	}
	r := reportOf(t, peer)
	if r.PID != os.Getpid() || r.Started.IsZero() || len(r.Servers) != 2 {
		t.Fatalf("report %+v", r)
	}
	states := map[string]host.State{}
	for _, s := range r.Servers {
		states[s.Name] = s.State
		if called := !s.LastCall.IsZero(); called != (s.Name == "math") {
			t.Errorf("%s: last call %v", s.Name, s.LastCall)
		}
	}
	if diff := cmp.Diff(map[string]host.State{"idle": host.Disconnected, "math": host.Connected}, states); diff != "" {
		t.Errorf("states (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]policy.BudgetStatus{{Server: "math", Run: 1, RunLimit: 10}}, r.Budgets); diff != "" {
		t.Errorf("budgets (-want +got)\n%s", diff)
	}
	for _, path := range []string{"/reload?server=math", "/stop?server=math@work"} {
		if _, err := h.Call(t.Context(), "math", "echo", nil, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t, peer, http.MethodPost, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, s := range reportOf(t, peer).Servers {
			if s.Active {
				t.Errorf("after %s %s is still connected", path, s.Name)
			}
		}
	}
}

func TestControlRefuses(t *testing.T) {
	cfg := &config.Config{Servers: []config.Server{{Name: "broken", Problem: errors.New("line 3: no")}}}
	h := opened(t, cfg, "math")
	peer, _ := steered(t, h)
	tests := []struct {
		method, path, want string
		unknown            bool
	}{
		{http.MethodPost, "/reload?server=mth", `did you mean "math"?`, true},
		{http.MethodPost, "/stop?server=mth", `no server named "mth" is configured`, true},
		{http.MethodPost, "/stop?server=broken", "line 3: no", false},
		{http.MethodPost, "/stop?server=math@", "write server or server@label", false},
		{http.MethodGet, "/logs?server=mth", "no server named", true},
		{http.MethodGet, "/logs?server=math@nobody", "not in use here", true},
		{http.MethodGet, "/stop?server=math", "Method Not Allowed", false},
	}
	for _, tt := range tests {
		_, err := ask(t, peer, tt.method, tt.path)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, control.ErrUnknownServer) != tt.unknown {
			t.Errorf("%s %s: %v; want %q, unknown %v", tt.method, tt.path, err, tt.want, tt.unknown)
		}
	}
	for _, s := range h.Status().Servers {
		if s.Account != "" {
			t.Errorf("asking made an account known: %+v", s)
		}
	}
}

func TestControlLogs(t *testing.T) {
	h := opened(t, &config.Config{}, "math")
	peer, served := steered(t, h)
	ring := h.logs.Of(host.Key{Server: "math"})
	_, _ = io.WriteString(ring, "one\ntwo\nthree\n")

	texts := func(body string) (out []string) {
		for line := range strings.Lines(body) {
			var l status.LogLine
			if err := json.Unmarshal([]byte(line), &l); err != nil || l.Time.IsZero() {
				t.Errorf("line %q: %v", line, err)
			}
			out = append(out, l.Text)
		}
		return out
	}
	for path, want := range map[string][]string{
		"/logs?server=math":            {"one", "two", "three"},
		"/logs?server=math&lines=2":    {"two", "three"},
		"/logs?server=math&lines=many": {"one", "two", "three"},
	} {
		body, err := ask(t, peer, http.MethodGet, path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, texts(body)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
	}

	resp, err := peer.Do(t.Context(), http.MethodGet, "/logs?server=math&follow=1&lines=1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	for i, want := range []string{"three", "four"} {
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			t.Errorf("followed %q, %v; want %s", line, err, want)
		}
		if i == 0 {
			_, _ = io.WriteString(ring, "four\n")
		}
	}
	if err := served.Close(); err != nil {
		t.Error(err)
	}
	if _, err := lines.ReadString('\n'); err == nil {
		t.Error("following goes on after the socket was closed")
	}
}
