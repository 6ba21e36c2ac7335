package fake

import (
	"context"
	"io"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/usher-mcp/usher/mcp"
)

// TestOfficialClient holds a plain conversation with the official client in every
// revision over every transport, so that the fake is known to be right before it
// is made wrong.
func TestOfficialClient(t *testing.T) {
	for _, version := range mcp.Versions() {
		for _, transport := range []string{"stdio", "http", "http-sse", "sse"} {
			if transport == "sse" && mcp.Stateless(version) {
				continue
			}
			t.Run(version+"/"+transport, func(t *testing.T) {
				s := New(&Options{Versions: []string{version}, PageSize: 5})
				if transport == "http-sse" {
					s.Set("sse")
				}
				converse(t, s, sdkTransport(t, s, transport), version)
			})
		}
	}
}

func sdkTransport(t *testing.T, s *Server, kind string) sdk.Transport {
	if kind == "stdio" {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		go func() { _ = s.ServeStdio(context.Background(), inR, outW) }()
		t.Cleanup(s.Close)
		return &sdk.IOTransport{Reader: outR, Writer: inW}
	}
	url, hc := serveHTTP(t, s)
	hc = &http.Client{Transport: hc.Transport}
	if kind == "sse" {
		return &sdk.SSEClientTransport{Endpoint: url + "/sse", HTTPClient: hc}
	}
	return &sdk.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: hc}
}

func converse(t *testing.T, s *Server, tr sdk.Transport, version string) {
	ctx := testContext(t)
	progress, changed := make(chan *sdk.ProgressNotificationParams, 16), make(chan struct{}, 4)
	client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { progress <- r.Params },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	cs, err := client.Connect(ctx, tr, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if got := cs.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("negotiated %s, want %s", got, version)
	}
	names := map[string]bool{}
	for tool, err := range cs.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names[tool.Name] = true
	}
	if len(names) != len(DefaultTools()) {
		t.Errorf("listed %d tools, want %d", len(names), len(DefaultTools()))
	}
	call := func(name string, args map[string]any, token any) string {
		t.Helper()
		p := &sdk.CallToolParams{Name: name, Arguments: args}
		if token != nil {
			p.SetProgressToken(token)
		}
		res, err := cs.CallTool(ctx, p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return res.Content[0].(*sdk.TextContent).Text
	}
	if got := call("add", map[string]any{"a": 2, "b": 3}, nil); got != "5" {
		t.Errorf("add = %q", got)
	}
	call("slow", map[string]any{"ms": 3, "steps": 3}, "tok")
	for i := range 3 {
		if p := <-progress; p.Progress != float64(i+1) || p.ProgressToken != "tok" {
			t.Errorf("progress %d = %v of %v", i, p.Progress, p.ProgressToken)
		}
	}
	if got, want := call("ask", nil, nil), `{"action":"accept","content":{"name":"Ada"}}`; got != want {
		t.Errorf("ask = %s, want %s", got, want)
	}
	call("region", map[string]any{"region": "żółć", "shard": 7}, nil)
	if _, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{URI: "fake://readme"}); err != nil {
		t.Error(err)
	}
	if _, err := cs.GetPrompt(ctx, &sdk.GetPromptParams{Name: "greet"}); err != nil {
		t.Error(err)
	}
	waitForListener(t, ctx, s, version)
	call("mutate", nil, nil)
	select {
	case <-changed:
	case <-ctx.Done():
		t.Error("no list_changed")
	}
	cancelSlow(t, ctx, s, cs)
}

// waitForListener waits until a change would reach the client: on legacy HTTP the
// stream is opened in the background, and in the modern era the subscription.
func waitForListener(t *testing.T, ctx context.Context, s *Server, version string) {
	t.Helper()
	_, err := s.ledger.WaitFor(ctx, func(e Entry) bool {
		return e.Event == EventListening || e.Transport == "stdio" && !mcp.Stateless(version)
	})
	if err != nil {
		t.Fatal("no stream to push to")
	}
}

func cancelSlow(t *testing.T, ctx context.Context, s *Server, cs *sdk.ClientSession) {
	t.Helper()
	callCtx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(callCtx, &sdk.CallToolParams{Name: "slow", Arguments: map[string]any{"ms": 60000}})
		done <- err
	}()
	if _, err := s.ledger.WaitFor(ctx, func(e Entry) bool {
		return e.Event == EventRequest && e.Name == "slow" && string(e.Params) != "" && len(s.ledger.Calls("slow")) == 2
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("cancelled call succeeded")
	}
	if _, err := s.ledger.WaitFor(ctx, func(e Entry) bool { return e.Event == EventCancelled && e.Name == "slow" }); err != nil {
		t.Error("the cancellation did not arrive")
	}
}
