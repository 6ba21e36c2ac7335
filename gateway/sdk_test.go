package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
)

// The official client in every revision it speaks, over HTTP and stdio, before
// servers of both eras: list, call, progress, cancel, elicitation.
func TestOfficialClient(t *testing.T) {
	for _, modern := range []bool{true, false} {
		srv, f := httpFake(t, "f", &fake.Options{Versions: versionsOf(modern)})
		s := newStack(t, nil, srv)
		for _, version := range mcp.Versions() {
			t.Run(version, func(t *testing.T) {
				transport := &http.Transport{}
				defer transport.CloseIdleConnections()
				speak(t, version, f, &sdk.StreamableClientTransport{Endpoint: s.url + "/servers/f/mcp", HTTPClient: &http.Client{Transport: transport}})
			})
			t.Run(version+" stdio", func(t *testing.T) {
				view, err := s.surface.Server(t.Context(), surface.Agent{}, "f")
				if err != nil {
					t.Fatal(err)
				}
				toServer, fromClient := io.Pipe()
				toClient, fromServer := io.Pipe()
				done := make(chan error, 1)
				go func() {
					done <- s.gateway.ServeStdio(t.Context(), view, toServer, fromServer)
					_ = fromServer.Close()
				}()
				speak(t, version, f, &sdk.IOTransport{Reader: toClient, Writer: fromClient})
				_ = fromClient.Close()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// speak has a conversation with a server through the official client.
func speak(t *testing.T, version string, f *fake.Server, transport sdk.Transport) {
	t.Helper()
	var progress atomic.Int32
	reported := make(chan struct{}, 8)
	c := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Grace"}}, nil
		},
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) {
			progress.Add(1)
			reported <- struct{}{}
		},
	})
	session, err := c.Connect(long(t), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("negotiated %s", got)
	}
	tools, err := session.ListTools(long(t), nil)
	if err != nil || len(tools.Tools) < 10 {
		t.Fatalf("%v: %v", err, tools)
	}
	echo, err := session.CallTool(long(t), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"a": "b"}})
	if err != nil || echo.Content[0].(*sdk.TextContent).Text != `{"a":"b"}` {
		t.Errorf("%v: %+v", err, echo)
	}
	slow := &sdk.CallToolParams{Name: "slow", Arguments: map[string]any{"ms": 4, "steps": 4}}
	slow.SetProgressToken("tok")
	if _, err := session.CallTool(long(t), slow); err != nil {
		t.Error(err)
	}
	for range 4 {
		select {
		case <-reported:
		case <-long(t).Done():
			t.Errorf("%d reports of progress", progress.Load())
			return
		}
	}
	asked, err := session.CallTool(long(t), &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{}})
	if err != nil || asked.IsError {
		t.Errorf("ask: %v %+v", err, asked)
	}
	before := len(f.Ledger().Events(fake.EventCancelled))
	calls := len(f.Ledger().Calls("slow"))
	ctx, cancel := context.WithCancel(long(t))
	go func() {
		_, _ = f.Ledger().WaitFor(ctx, func(fake.Entry) bool { return len(f.Ledger().Calls("slow")) > calls })
		cancel()
	}()
	if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "slow", Arguments: map[string]any{"ms": 600000}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
	if _, err := f.Ledger().WaitFor(long(t), func(fake.Entry) bool { return len(f.Ledger().Events(fake.EventCancelled)) > before }); err != nil {
		t.Errorf("the server did not hear of the cancel: %v", err)
	}
}
