package policy

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
)

// A context with a budget allows so many calls, whoever makes them, and a budget
// inside of it counts for both.
func TestWithBudget(t *testing.T) {
	h := newFakeHost(simpleTool("x"))
	g := openGate(t, h, nil, nil)
	outer := WithBudget(t.Context(), 10)
	inner := WithBudget(outer, 4)
	var wg sync.WaitGroup
	for range 9 {
		wg.Go(func() { _, _ = g.Call(inner, callOf("s", "x")) })
	}
	wg.Wait()
	if n := h.calls.Load(); n != 4 {
		t.Errorf("%d calls of 4 were made", n)
	}
	var spent *BudgetError
	if _, err := g.Call(inner, callOf("s", "x")); !errors.As(err, &spent) || spent.Scope != ScopeDispatch || spent.Limit != 4 {
		t.Errorf("error %v", err)
	}
	if left, ok := BudgetLeft(outer); !ok || left != 6 {
		t.Errorf("%d of the outer budget are left, want 6", left)
	}
	if left, ok := BudgetLeft(inner); !ok || left != 0 {
		t.Errorf("%d of the inner budget are left", left)
	}
	if _, ok := BudgetLeft(t.Context()); ok {
		t.Error("a context without a budget has one")
	}
	if _, err := g.Call(t.Context(), callOf("s", "x")); err != nil {
		t.Errorf("without a budget: %v", err)
	}
	wide := WithBudget(outer, 100)
	for range 20 {
		_, _ = g.Call(wide, callOf("s", "x"))
	}
	if n := h.calls.Load(); n != 11 {
		t.Errorf("%d calls, want 5 and the 6 that the outer budget had left", n)
	}
}

// A call that another budget refuses is not charged.
func TestBudgetsRefund(t *testing.T) {
	c := configOf(nil, nil)
	c.Usher.Budgets.Total.Run, c.Usher.Budgets.Session = 3, 2
	g := openGate(t, newFakeHost(simpleTool("x")), nil, &Options{Config: c})
	ctx := WithBudget(t.Context(), 5)
	call := callOf("s", "x")
	call.Caller.Session = &Session{}
	refused := func(scope string) {
		t.Helper()
		var spent *BudgetError
		if _, err := g.Call(ctx, call); !errors.As(err, &spent) || spent.Scope != scope {
			t.Errorf("error %v, want one of %q", err, scope)
		}
	}
	for range 2 {
		if _, err := g.Call(ctx, call); err != nil {
			t.Fatal(err)
		}
	}
	refused(ScopeSession)
	call.Caller.Session = &Session{}
	if _, err := g.Call(ctx, call); err != nil {
		t.Errorf("a new session: %v", err)
	}
	refused("")
	if left, _ := BudgetLeft(ctx); left != 2 {
		t.Errorf("%d calls are left, want 2", left)
	}
	if n := call.Caller.Session.Used(); n != 1 {
		t.Errorf("the session was charged %d calls", n)
	}
}

// The hook sees for whom and with what a tool is called, and can be replaced.
func TestHookSeesTheCall(t *testing.T) {
	h := newFakeHost(simpleTool("a"))
	var seen []HookRequest
	g := openGate(t, h, nil, &Options{
		Config: configOf(nil, nil, config.Server{Name: "s", Tools: config.ToolRules{Rename: map[string]string{"a": "alpha"}}}),
		Hook: func(_ context.Context, r HookRequest) Decision {
			var args struct{ Path string }
			if json.Unmarshal(r.Arguments, &args) == nil && args.Path == "/etc" {
				return Decision{Reason: "not there"}
			}
			seen = append(seen, r)
			return Decision{Allow: true}
		},
	})
	call := Call{Caller: As("eve"), Key: Key{Server: "s", Account: "work"}, Tool: "alpha"}
	call.Params = []byte(`{"name":"alpha","arguments":{"path":"/tmp"}}`)
	if _, err := g.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	call.Params = []byte(`{"name":"alpha"}`)
	if _, err := g.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	want := []HookRequest{
		{Principal: "eve", Server: "s", Account: "work", Tool: "a", Arguments: []byte(`{"path":"/tmp"}`)},
		{Principal: "eve", Server: "s", Account: "work", Tool: "a", Arguments: []byte(`{}`)},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
	call.Params = []byte(`{"name":"alpha","arguments":{"path":"/etc"}}`)
	if _, err := g.Call(t.Context(), call); !errors.Is(err, ErrDenied) {
		t.Errorf("refused arguments: %v", err)
	}
	before := h.calls.Load()
	call.Params = []byte(`{"name":"alpha","arguments":{"path":"/tmp"},"arguments":{"path":"/etc"}}`)
	if _, err := g.Call(t.Context(), call); err == nil || h.calls.Load() != before {
		t.Errorf("arguments that two readers read differently: %v", err)
	}
	call.Params = []byte(`{"name":"alpha","arguments":{"path":"/etc"}}`)
	g.SetHook(nil)
	if _, err := g.Call(t.Context(), call); err != nil {
		t.Errorf("without a hook: %v", err)
	}
	g.SetHook(func(context.Context, HookRequest) Decision { return Decision{} })
	if _, err := g.Call(t.Context(), call); !errors.Is(err, ErrDenied) {
		t.Errorf("with another hook: %v", err)
	}
}

// A cache hit is a call like any other, and a refused call costs nothing.
func TestEveryLogicalCallIsCharged(t *testing.T) {
	h := newFakeHost(simpleTool("x"))
	h.do = answers(`{"content":[],"ttlMs":60000}`)
	cfg := configOf(nil, []string{"s/denied"})
	cfg.Usher.Budgets.Servers = map[string]config.Budget{"s": {Run: 4}}
	g := openGate(t, h, nil, &Options{Config: cfg})
	for range 3 {
		if _, err := g.Call(t.Context(), callOf("s", "denied")); !errors.Is(err, ErrDenied) {
			t.Fatal(err)
		}
	}
	for range 4 {
		if _, err := g.Call(t.Context(), callOf("s", "x")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Call(t.Context(), callOf("s", "x")); !errors.Is(err, ErrBudget) {
		t.Errorf("%v, want ErrBudget", err)
	}
	if n := h.calls.Load(); n != 1 {
		t.Errorf("%d calls reached the server, want 1 and 3 hits", n)
	}
}
