package clients

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The official Go client with a usher that it starts, and with one that runs. Every
// revision it speaks is tested in gateway; here it is the program.
func TestGoClient(t *testing.T) {
	w := newWorld(t)
	url := w.gateway("--surface", "direct")
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		for _, way := range []string{"http", "stdio"} {
			t.Run(version+" "+way, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: idle(t)}
				if way == "stdio" {
					transport = &mcp.CommandTransport{Command: w.command(context.Background(), "serve", "--surface", "direct")}
				}
				w.speak(ctx, t, transport, version)
			})
		}
	}
}

// speak lists, calls, is asked, and hears that lists have changed.
func (w *world) speak(ctx context.Context, t *testing.T, transport mcp.Transport, version string) {
	t.Helper()
	changed := make(chan struct{}, 64)
	c := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Grace"}}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	session, err := c.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	names := func() map[string]bool {
		out := map[string]bool{}
		for tool, err := range session.Tools(ctx, nil) {
			if err != nil {
				t.Fatal(err)
			}
			out[tool.Name] = true
		}
		return out
	}
	if got := session.InitializeResult().ProtocolVersion; got != version || !names()["old__echo"] {
		t.Errorf("negotiated %s, tools %v", got, names())
	}
	for _, server := range []string{"old", "new"} {
		answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: server + "__ask", Arguments: map[string]any{}})
		if err != nil || answer.IsError {
			t.Errorf("%s: %v %+v", server, err, answer)
		}
	}
	added := w.change()
	for told := false; !told; told = names()[added+"__echo"] {
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s was never told", added)
		}
	}
}
