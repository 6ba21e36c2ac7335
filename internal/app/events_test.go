package app

import (
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// A program hears of pins that change, budgets that are spent and circuits that open.
func TestPublicEvents(t *testing.T) {
	var bus event.Bus[event.Event]
	events := bus.Subscribe(1000)
	defer events.Close()
	h, err := Open(t.Context(), &Options{Config: &config.Config{Usher: config.DefaultSettings()}, Store: vault.NewMemory(), Events: &bus})
	if err != nil {
		t.Fatal(err)
	}
	for _, srv := range []config.Server{started(t, "math"), startedAs(t, &fake.Options{Name: "math", Switches: []string{"schema-change=1"}})} {
		if err := h.Servers().Spawn(t.Context(), srv, &host.SpawnOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Tools(t.Context(), "math"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Call(policy.WithBudget(t.Context(), 0), "math", "add", nil, nil); err == nil {
		t.Error("a call without a budget")
	}
	down := config.Server{Name: "down", Transport: config.TransportHTTP, URL: "http://127.0.0.1:1/mcp"}.WithDefaults()
	down.Supervision.CircuitThreshold = 1
	if err := h.Servers().Spawn(t.Context(), down, &host.SpawnOptions{Lazy: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Call(t.Context(), "down", "x", nil, nil); err == nil {
		t.Error("a server that is down answers")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	bus.Close()
	seen := map[event.Kind]bool{}
	for e := range events.All(t.Context()) {
		switch e := e.(type) {
		case event.PinChanged:
			seen[e.Kind()] = seen[e.Kind()] || e.Server == "math" && e.Tool == "echo" && e.Change == "changed"
		case event.BudgetSpent:
			seen[e.Kind()] = e.Server == "math" && e.Scope == policy.ScopeDispatch && !e.Shared
		case event.CircuitChanged:
			seen[e.Kind()] = e.Server == "down" && e.Open
		}
	}
	for _, kind := range []event.Kind{event.KindPin, event.KindBudget, event.KindCircuit} {
		if !seen[kind] {
			t.Errorf("no event of kind %s", kind)
		}
	}
}
