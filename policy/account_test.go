package policy

import (
	"errors"
	"testing"

	"github.com/usher-mcp/usher/config"
)

// TestNewRulesApplyAtOnce: what an account remembers of the rules ends with them, for a
// server that was called before.
func TestNewRulesApplyAtOnce(t *testing.T) {
	g := openGate(t, newFakeHost(simpleTool("x")), nil, nil)
	check := func(step string, want error) {
		t.Helper()
		if _, err := g.Call(t.Context(), Call{Key: Key{Server: "s"}, Tool: "x"}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", step, err, want)
		}
	}
	check("no rules", nil)
	g.Configure(configOf(nil, []string{"s/x"}))
	check("denied by everybody's rules", ErrDenied)
	g.Configure(configOf(nil, nil, config.Server{Name: "s"}))
	check("allowed again", nil)
	g.Register(config.Server{Name: "s", Tools: config.ToolRules{Deny: []string{"x"}}})
	check("denied by the server's own rules", ErrDenied)
	g.Register(config.Server{Name: "other"})
	check("another server is registered", ErrDenied)
	g.Configure(nil)
	check("no rules any more", nil)
}
