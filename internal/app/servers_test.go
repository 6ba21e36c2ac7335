package app

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/policy"
)

// startAuth runs an authorization server.
func startAuth(t *testing.T) *fake.AuthServer {
	t.Helper()
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return as
}

// started runs a server that everybody may use.
func started(t *testing.T, name string) config.Server {
	t.Helper()
	url, stop, err := fake.New(&fake.Options{Name: name}).Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return config.Server{Name: name, Transport: config.TransportHTTP, URL: url + "/mcp"}
}

func stateOf(t *testing.T, h *App, name string) host.ServerStatus {
	t.Helper()
	for _, s := range h.Status().Servers {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s has no status", name)
	return host.ServerStatus{}
}

func TestLazySpawnIsReportedAsLazy(t *testing.T) {
	h := opened(t, &config.Config{})
	if err := h.Servers().Spawn(t.Context(), started(t, "math"), &host.SpawnOptions{Lazy: true}); err != nil {
		t.Fatal(err)
	}
	if s := stateOf(t, h, "math"); !s.Lazy || s.Active {
		t.Errorf("before the first call: %+v", s)
	}
	if _, err := h.Tools(t.Context(), "math"); err != nil {
		t.Fatal(err)
	}
	if s := stateOf(t, h, "math"); !s.Lazy {
		t.Errorf("after the first call: %+v", s)
	}
}

// A server that needs a login is registered, shown as such, and offered by the bulk
// login; after the login it works.
func TestSpawnOfAServerThatNeedsALogin(t *testing.T) {
	as := startAuth(t)
	srv := protected(t, "notes", as)
	h := opened(t, &config.Config{Usher: config.DefaultSettings()})
	if err := h.Servers().Spawn(t.Context(), srv, nil); err != nil {
		t.Fatal(err)
	}
	if s := stateOf(t, h, "notes"); s.State != host.NeedsAuth || !s.Auth.NeedsLogin() {
		t.Errorf("state %+v", s)
	}
	targets, err := h.Logins().Targets(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(targets) != 1 || targets[0].Account.Server != "notes" {
		t.Errorf("the bulk login offers %+v", targets)
	}
	login(t, h, as, srv)
	if _, err := h.Tools(t.Context(), "notes"); err != nil {
		t.Errorf("after the login: %v", err)
	}
}

func TestSpawnArguments(t *testing.T) {
	h := opened(t, &config.Config{})
	for name, srv := range map[string]config.Server{
		"no name":  {Transport: config.TransportHTTP, URL: "http://127.0.0.1:1"},
		"bad name": {Name: "a/b", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1"},
		"no url":   {Name: "a", Transport: config.TransportHTTP},
	} {
		err := h.Servers().Spawn(t.Context(), srv, nil)
		if !errors.Is(err, host.ErrInvalid) || errors.Is(err, policy.ErrDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// hasTool reports whether a server lists a tool.
func hasTool(t *testing.T, h *App, server, tool string) bool {
	t.Helper()
	list, err := h.Tools(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.Tools, func(have Tool) bool { return have.Name == tool })
}

// A name can be given to another definition, with its rules, and be freed.
func TestReplaceAndRemove(t *testing.T) {
	h := opened(t, &config.Config{}, "math")
	first, second := h.Config().Servers[0], started(t, "math")
	second.Tools.Deny = []string{"add"}
	if err := h.Servers().Stop("math"); err != nil {
		t.Fatal(err)
	}
	if err := h.Servers().Spawn(t.Context(), second, nil); !errors.Is(err, host.ErrExists) {
		t.Errorf("without Replace: %v", err)
	}
	replace := &host.SpawnOptions{Replace: true}
	if err := h.Servers().Spawn(t.Context(), second, replace); err != nil {
		t.Fatal(err)
	}
	if hasTool(t, h, "math", "add") {
		t.Error("the rules of the replacement do not apply")
	}
	if got, _ := h.hosted.Server("math"); got.URL != second.URL {
		t.Errorf("hosted is %s", got.URL)
	}
	broken := second
	broken.URL, broken.Tools.Deny = "http://127.0.0.1:1/mcp", []string{"echo"}
	if err := h.Servers().Spawn(t.Context(), broken, replace); err == nil {
		t.Fatal("a broken replacement is accepted")
	}
	if hasTool(t, h, "math", "add") || !hasTool(t, h, "math", "echo") {
		t.Error("a failed replacement changed the rules")
	}
	if err := h.Servers().Remove("math"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Call(t.Context(), "math", "echo", nil, nil); !errors.Is(err, host.ErrUnknownServer) {
		t.Errorf("a call of a removed server: %v", err)
	}
	if err := h.Servers().Remove("math"); !errors.Is(err, host.ErrUnknownServer) {
		t.Errorf("removed twice: %v", err)
	}
	if n := len(h.Config().Servers); n != 0 {
		t.Errorf("%d servers are left in the configuration", n)
	}
	if err := h.Servers().Spawn(t.Context(), first, nil); err != nil {
		t.Fatal(err)
	}
	if !hasTool(t, h, "math", "add") {
		t.Error("the rules of a removed server still apply")
	}
}

// Spawns of different names do not wait for each other; those of one name do.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names nameLocks
		done, err := names.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		other, err := names.lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := names.lock(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second turn: %v", err)
		}
		done()
		if done, err = names.lock(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		done()
	})
}
