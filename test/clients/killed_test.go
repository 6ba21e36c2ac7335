package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/usher-mcp/usher/internal/fake"
)

// agentMain is an agent that calls a tool and waits forever: agent stdio PROGRAM, or
// agent http URL.
func agentMain(args []string) error {
	ctx := context.Background()
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: args[1]}
	if args[0] == "stdio" {
		transport = &mcp.CommandTransport{Command: exec.Command(args[1], "serve", "--surface", "direct")}
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := c.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: args[2]})
	if err != nil {
		return err
	}
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: args[3] + "__slow", Arguments: map[string]any{"ms": 600_000}})
	return fmt.Errorf("the call has ended: %w", err)
}

// An agent that is killed in the middle of a call: the server sees the cancel, and
// nothing else happens at it in between. No clock is involved: the agent is killed
// because the server has the call, and the test ends because it saw the cancel.
func TestKilledAgent(t *testing.T) {
	w := newWorld(t)
	url := w.gateway("--surface", "direct")
	tests := []struct{ way, address, version string }{
		{"http", url, "2026-07-28"},
		{"stdio", w.program, "2026-07-28"},
		{"stdio", w.program, "2025-11-25"},
	}
	for _, tt := range tests {
		for _, server := range []string{"new", "old"} {
			t.Run(tt.way+" "+tt.version+" "+server, func(t *testing.T) {
				ledger := w.fakes[server].Ledger()
				seen := len(ledger.Entries())
				agent := exec.Command("agent", tt.way, tt.address, tt.version, server)
				agent.Env, agent.Dir = w.env(), w.home
				if err := agent.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = agent.Wait() }() // it was killed
				defer func() { _ = agent.Process.Signal(os.Kill) }()
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				has := func(event string) bool {
					for _, e := range ledger.Entries()[seen:] {
						if e.Event == event && (event != fake.EventRequest || e.Name == "slow") {
							return true
						}
					}
					return false
				}
				if _, err := ledger.WaitFor(ctx, func(fake.Entry) bool { return has(fake.EventRequest) }); err != nil {
					t.Fatalf("the call never arrived: %v", err)
				}
				if err := agent.Process.Signal(os.Kill); err != nil {
					t.Fatal(err)
				}
				if _, err := ledger.WaitFor(ctx, func(fake.Entry) bool { return has(fake.EventCancelled) }); err != nil {
					t.Fatalf("the cancel never arrived: %v", err)
				}
				between(t, ledger.Entries()[seen:])
			})
		}
	}
}

// between wants nothing but the cancel itself to happen between the call and its
// end. The host's own subscription does not count: it begins with the connection, and
// the call does not wait for it.
func between(t *testing.T, entries []fake.Entry) {
	t.Helper()
	inside := false
	for _, e := range entries {
		switch {
		case e.Event == fake.EventRequest && e.Name == "slow":
			inside = true
		case e.Event == fake.EventCancelled:
			return
		case inside && e.Event == fake.EventRequest && e.Method != "subscriptions/listen":
			t.Errorf("%s %s came before the cancel", e.Method, e.Name)
		}
	}
}
