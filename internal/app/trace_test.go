package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/vault"
)

const (
	agentTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	agentSpan  = "00f067aa0ba902b7"
)

// askMeta lets an agent call the tool that says which _meta it got.
func askMeta(t *testing.T, tracer trace.Tracer, legacy bool) (meta []byte) {
	t.Helper()
	opt := &fake.Options{Name: "math"}
	url, stop, err := fake.New(opt).Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	srv := config.Server{Name: "math", Transport: config.TransportHTTP, URL: url + "/mcp", KeepAlive: time.Minute}.WithDefaults()
	h, err := Open(t.Context(), &Options{
		Config: &config.Config{Servers: []config.Server{srv}}, Store: vault.NewMemory(), Tracer: tracer,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	g := h.Frontend().Gateway(nil)
	t.Cleanup(g.Close)
	door := httptest.NewServer(g.Handler())
	t.Cleanup(door.Close)
	context := fmt.Sprintf(`"traceparent":"00-%s-%s-01","tracestate":"a=b","baggage":"c=d"`, agentTrace, agentSpan)
	version := `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	head := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"meta"}}
	if legacy {
		version, head = "", http.Header{}
		head.Set("Mcp-Session-Id", begin(t, door.URL+"/servers/math/mcp"))
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"meta","arguments":{},"_meta":{%s%s}}}`, context, version)
	_, answer := post(t, door.URL+"/servers/math/mcp", head, body)
	meta, ok := jsonx.Path(answer, "result", "structuredContent")
	if !ok {
		t.Fatalf("answer %s", answer)
	}
	return meta
}

func begin(t *testing.T, url string) string {
	t.Helper()
	h, _ := post(t, url, nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	return h.Get("Mcp-Session-Id")
}

// post sends one message and returns the one that answers it.
func post(t *testing.T, url string, head http.Header, body string) (http.Header, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range head {
		r.Header[k] = v
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, data, ok := strings.Cut(string(text), "data: {"); ok {
		text = []byte("{" + data)
	}
	http.DefaultClient.CloseIdleConnections()
	return res.Header, text
}

// A trace that an agent began goes on through us: our spans hang below its span, and
// the server hears of ours.
func TestTraces(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		t.Run(fmt.Sprintf("legacy=%v", legacy), func(t *testing.T) {
			seen := tracetest.NewSpanRecorder()
			tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen))
			meta := askMeta(t, tp.Tracer("test"), legacy)
			var inner, outer sdktrace.ReadOnlySpan
			for _, s := range seen.Ended() {
				if s.Name() != "tools/call meta" {
					continue
				}
				if s.SpanKind() == trace.SpanKindServer {
					outer = s
				} else {
					inner = s
				}
			}
			if inner == nil || outer == nil {
				t.Fatalf("spans %v", seen.Ended())
			}
			got := []string{outer.Parent().SpanID().String(), inner.Parent().SpanID().String(), inner.SpanContext().TraceID().String(), jsonx.GetText(meta, "traceparent"), jsonx.GetText(meta, "tracestate"), jsonx.GetText(meta, "baggage")}
			want := []string{
				agentSpan, outer.SpanContext().SpanID().String(), agentTrace,
				"00-" + agentTrace + "-" + inner.SpanContext().SpanID().String() + "-01", "a=b", "c=d",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Without a tracer an agent's context passes as it is.
func TestTraceContextPasses(t *testing.T) {
	meta := askMeta(t, nil, false)
	if got := jsonx.GetText(meta, "traceparent"); got != "00-"+agentTrace+"-"+agentSpan+"-01" {
		t.Errorf("the server got traceparent %q", got)
	}
}
