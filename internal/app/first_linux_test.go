package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/vault"
)

// children are the processes that this one has started and not waited for.
func children(t *testing.T) []string {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Fatalf("the kernel does not list children: %v", err)
	}
	var pids []string
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread may have ended meanwhile
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids
}

// The guard around the child that is used first is started with the host, one for
// all its accounts, and ends with it when nobody used it.
func TestFirst(t *testing.T) {
	cfg := &config.Config{Servers: []config.Server{
		{Name: "child", Transport: config.TransportStdio, Command: "sh"},
		{Name: "off", Transport: config.TransportStdio, Command: "sh", Disabled: true},
		{Name: "far", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1/mcp"},
	}}
	sys := config.System{LookupEnv: func(name string) (string, bool) { return t.TempDir(), name == "USHER_HOME" }}
	for first, want := range map[string]int{"child": 1, "child@work": 1, "off": 0, "far": 0, "nobody": 0, "": 0} {
		h, err := Open(t.Context(), &Options{
			Config: cfg, Load: config.LoadOptions{System: sys}, Store: vault.NewMemory(), Executable: process.Self(), StartEarly: first,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := children(t); len(got) != want {
			t.Errorf("%q: %d processes, want %d", first, len(got), want)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if left := children(t); len(left) > 0 {
			t.Errorf("%q: left behind: %v", first, left)
		}
	}
	// A store that cannot be opened.
	bad := *cfg
	bad.Usher.Store = "/dev/null/store"
	if _, err := Open(t.Context(), &Options{Config: &bad, Load: config.LoadOptions{System: sys}, Executable: process.Self(), StartEarly: "child"}); err == nil {
		t.Error("opened")
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("left behind by a host that could not be opened: %v", left)
	}
}

// A connection is made ahead of a call that may be made, and of no other.
func TestAhead(t *testing.T) {
	cfg := &config.Config{Servers: []config.Server{
		{Name: "denied", Transport: config.TransportStdio, Command: "sh", Tools: config.ToolRules{Deny: []string{"tool"}}},
		{Name: "strange", Transport: config.TransportStdio, Command: "sh", Origin: config.Origin{Layer: config.LayerProject, File: "mcp.json"}},
		{Name: "off", Transport: config.TransportStdio, Command: "sh", Disabled: true},
		{Name: "child", Transport: config.TransportStdio, Command: "sh"},
	}}
	h, err := Open(t.Context(), &Options{Config: cfg, Store: vault.NewMemory(), Executable: process.Self()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, name := range []string{"denied", "strange", "off", "nobody", "", "child"} {
		h.ConnectEarly(t.Context(), name, "tool")
	}
	for len(children(t)) == 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	if n := h.hosted.Stats().Dials; n != 1 {
		t.Errorf("%d were dialled, want 1", n)
	}
}
