package app

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/vault"
)

// startedAs runs a server with options of its own.
func startedAs(t *testing.T, opt *fake.Options) config.Server {
	t.Helper()
	url, stop, err := fake.New(opt).Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return config.Server{Name: opt.Name, Transport: config.TransportHTTP, URL: url + "/mcp"}
}

// A tool that differs from its pin is marked wherever tools are listed, and every row
// names its server.
func TestRowsMarkChangedTools(t *testing.T) {
	h := opened(t, &config.Config{}, "math", "other")
	if !hasTool(t, h, "math", "echo") {
		t.Fatal("no echo")
	}
	changed := startedAs(t, &fake.Options{Name: "math", Switches: []string{"schema-change=1"}})
	if err := h.Servers().Spawn(t.Context(), changed, &host.SpawnOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for row := range h.Catalog().Discover(t.Context()) {
		if row.Err != nil {
			t.Fatal(row.Err)
		}
		rows[row.Server]++
		if want := row.Server == "math" && row.Tool == "echo"; row.SchemaChanged != want || row.Blocked != want {
			t.Errorf("%s/%s: changed %v, blocked %v", row.Server, row.Tool, row.SchemaChanged, row.Blocked)
		}
	}
	if len(rows) != 2 || rows["math"] != rows["other"] || rows["math"] < 2 {
		t.Errorf("rows %v", rows)
	}
	list, err := h.Tools(t.Context(), "math")
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.Server != "math" || tool.SchemaChanged != (tool.Name == "echo") {
			t.Errorf("%+v", tool)
		}
	}
}

// The first request of a topic counts as a miss, and an answer from the cache has a
// span.
func TestCacheIsCountedAndTraced(t *testing.T) {
	seen := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen))
	srv := startedAs(t, &fake.Options{Name: "math", ListTTL: 60_000}).WithDefaults()
	h, err := Open(t.Context(), &Options{
		Config: &config.Config{Servers: []config.Server{srv}}, Store: vault.NewMemory(), Tracer: tp.Tracer("test"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	var list policy.Request
	list.Method = mcp.MethodPromptsList
	for range 3 {
		if _, err := h.Gate().Do(t.Context(), policy.Caller{}, host.Key{Server: "math"}, list); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.Stats().Cache; got.Misses != 1 || got.Hits != 2 {
		t.Errorf("%+v", got)
	}
	hits := 0
	for _, s := range seen.Ended() {
		for _, a := range s.Attributes() {
			if s.Name() == mcp.MethodPromptsList && a.Key == "usher.cache.hit" && a.Value.AsBool() {
				hits++
			}
		}
	}
	if hits != 2 {
		t.Errorf("%d spans of hits in %v", hits, seen.Ended())
	}
}
