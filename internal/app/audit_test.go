package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// The credentials of a resource's URI and the arguments of a call are neither in the
// audit log nor in events, spans, log lines or what the console shows.
func TestCredentialsOfURIsAreNotRecorded(t *testing.T) {
	const canary = "hunter2"
	address, stop, err := fake.New(&fake.Options{Name: "math"}).Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	srv := config.Server{Name: "math", Transport: config.TransportHTTP, URL: address + "/mcp", KeepAlive: time.Minute}.WithDefaults()
	spans := tracetest.NewSpanRecorder()
	var log bytes.Buffer
	bus := &event.Bus[event.Event]{}
	heard := bus.Subscribe(64)
	cfg := &config.Config{Servers: []config.Server{srv}}
	cfg.Usher.Audit.Enabled = true
	h, err := Open(t.Context(), &Options{
		Config: cfg, Store: vault.NewMemory(), Events: bus, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test"),
	})
	if err != nil {
		t.Fatal(err)
	}
	h.calls.Watch()
	g := h.Frontend().Gateway(nil)
	front := httptest.NewServer(g.Handler())
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	uri := "https://ann:" + canary + "@example.com/a?token=" + canary + "#" + canary
	for endpoint, uri := range map[string]string{"/servers/math/mcp": uri, "/direct/mcp": "usher://math/" + uri} {
		head := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"resources/read"}, "Mcp-Name": {uri}}
		_, answer := post(t, front.URL+endpoint, head, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q,%s}}`, uri, meta))
		t.Logf("%s: %s", endpoint, answer) // found or not: it is recorded
	}
	head := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"echo"}}
	post(t, front.URL+"/servers/math/mcp", head, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q},%s}}`, canary, meta))
	front.Close()
	g.Close()
	h.audit.Close()

	seen := map[string]string{"the log": log.String()}
	blocks, err := h.Audit().Last(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		text, err := json.Marshal(b.Records)
		if err != nil {
			t.Fatal(err)
		}
		seen["the audit log"] += string(text)
	}
	for _, c := range h.calls.Recent() {
		seen["the console"] += c.Tool + string(c.Shape) + "\n"
	}
	for _, s := range spans.Ended() {
		seen["spans"] += fmt.Sprint(s.Name(), s.Attributes(), s.Status(), "\n")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	bus.Close()
	for e := range heard.All(t.Context()) {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		seen["events"] += string(text)
	}
	for where, text := range seen {
		if strings.Contains(text, canary) {
			t.Errorf("%s tell the credential: %s", where, text)
		}
	}
	for _, where := range []string{"the audit log", "events", "the console"} {
		if !strings.Contains(seen[where], "https://****@example.com/a?token=****#****") {
			t.Errorf("%s do not tell what was read: %s", where, seen[where])
		}
	}
	if !strings.Contains(seen["spans"], "resources/read") {
		t.Errorf("no span of it: %s", seen["spans"])
	}
}
