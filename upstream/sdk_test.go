package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/upstream"
)

// sdkServer is a server on the official SDK that speaks one revision only.
func sdkServer(version string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: []string{version}})
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in struct{ Text string }) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "slow"}, func(ctx context.Context, req *sdk.CallToolRequest, in struct{ Forever bool }) (*sdk.CallToolResult, any, error) {
		for i := range 3 {
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3})
		}
		if in.Forever {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(_ context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		if len(req.Params.InputResponses) == 0 {
			return &sdk.CallToolResult{RequestState: "st\u00e4te", InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{
				Mode: "form", Message: "who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","default":"nobody"}}}`),
			}}}, nil, nil
		}
		answer := req.Params.InputResponses["q"].(*sdk.ElicitResult)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(answer.Content["name"])}}}, nil, nil
	})
	return s
}

func sdkMain(args []string) int {
	if err := sdkServer(args[0]).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}

// sdkTarget describes how a test reaches the SDK's server.
func sdkTarget(t *testing.T, kind, version string) config.Server {
	srv := config.Server{Name: "sdk", Timeouts: config.Timeouts{Connect: 30 * time.Second}}
	if kind == "stdio" {
		srv.Transport, srv.Command, srv.Args = config.TransportStdio, testSelf(t), []string{"child-sdk", version}
		return srv
	}
	var h http.Handler
	s := sdkServer(version)
	get := func(*http.Request) *sdk.Server { return s }
	switch kind {
	case "http":
		h = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: mcp.Stateless(version), PropagateRequestCancellation: true})
		srv.Transport = config.TransportHTTP
	case "sse":
		h = sdk.NewSSEHandler(get, nil)
		srv.Transport = config.TransportSSE
	}
	hs := httptest.NewServer(h)
	t.Cleanup(hs.Close)
	srv.URL = hs.URL
	return srv
}

func testSelf(t testing.TB) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func dial(t *testing.T, srv config.Server, opt *upstream.Options) *upstream.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := upstream.Dial(ctx, &srv, opt)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func callTool(name, args string) mcp.Request {
	return mcp.Request{Method: mcp.MethodToolsCall, Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, name, args)}
}

func text(result []byte) string {
	var r struct{ Content []struct{ Text string } }
	_ = json.Unmarshal(result, &r)
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// TestOfficialSDK runs list, call, progress, cancel and elicitation against the
// official Go SDK's server in every revision over every transport it has.
func TestOfficialSDK(t *testing.T) {
	for _, version := range mcp.Versions() {
		for _, kind := range []string{"stdio", "http", "sse"} {
			if kind == "sse" && mcp.Stateless(version) {
				continue // the transport ended before that revision
			}
			t.Run(kind+"/"+version, func(t *testing.T) {
				t.Parallel()
				c := dial(t, sdkTarget(t, kind, version), &upstream.Options{Capabilities: []byte(`{"elicitation":{}}`)})
				if c.Version() != version {
					t.Fatalf("negotiated %s", c.Version())
				}
				if got := jsonx.GetText(c.Info().Info, "name"); got != "sdk" {
					t.Errorf("server info %s", c.Info().Info)
				}
				testList(t, c)
				testCall(t, c)
				testProgress(t, c)
				testCancel(t, c)
				if version >= mcp.V20250618 {
					testElicitation(t, c)
				}
			})
		}
	}
}

func testList(t *testing.T, c *upstream.Conn) {
	list, err := c.List(t.Context(), mcp.MethodToolsList)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	var names []string
	for _, tool := range list.Items {
		names = append(names, jsonx.GetText(tool, "name"))
	}
	if got := strings.Join(names, " "); got != "ask echo slow" {
		t.Errorf("tools %q", got)
	}
}

func testCall(t *testing.T, c *upstream.Conn) {
	result, err := c.Do(t.Context(), callTool("echo", `{"Text":"grüße"}`))
	if err != nil || text(result) != "grüße" {
		t.Errorf("echo: %s, %v", result, err)
	}
}

func testProgress(t *testing.T, c *upstream.Conn) {
	seen := make(chan string, 16)
	req := mcp.Request{
		Method: mcp.MethodToolsCall,
		Params: []byte(`{"name":"slow","arguments":{"Forever":false},"_meta":{"progressToken":"töken","x":1}}`),
		OnNotification: func(m mcp.Message) {
			seen <- jsonx.GetText(m.Params, "progressToken")
		},
	}
	result, err := c.Do(t.Context(), req)
	if err != nil || text(result) != "done" {
		t.Fatalf("slow: %s, %v", result, err)
	}
	for range 3 {
		select {
		case token := <-seen:
			if token != "töken" {
				t.Errorf("progress token %q", token)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("progress is missing")
		}
	}
}

func testCancel(t *testing.T, c *upstream.Conn) {
	ctx, cancel := context.WithCancel(t.Context())
	req := mcp.Request{
		Method:         mcp.MethodToolsCall,
		Params:         []byte(`{"name":"slow","arguments":{"Forever":true},"_meta":{"progressToken":1}}`),
		OnNotification: func(mcp.Message) { cancel() },
	}
	if _, err := c.Do(ctx, req); err == nil || ctx.Err() == nil {
		t.Errorf("cancelled call: %v", err)
	}
	// The connection must go on.
	testCall(t, c)
}

func testElicitation(t *testing.T, c *upstream.Conn) {
	asked := ""
	result, err := c.Call(t.Context(), callTool("ask", `{}`), func(_ context.Context, method string, params []byte) ([]byte, *mcp.Error) {
		asked = method + " " + jsonx.GetText(params, "message")
		return upstream.AcceptForm(params, []byte(`{}`)), nil
	})
	if err != nil || asked != "elicitation/create who?" || text(result) != "nobody" {
		t.Errorf("ask: asked %q, %s, %v", asked, result, err)
	}
}
