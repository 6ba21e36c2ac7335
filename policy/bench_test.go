package policy

import (
	"context"
	"fmt"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/mcp"
)

// idleHost answers at once and forgets.
type idleHost struct {
	catalog host.Catalog
	result  []byte
}

func (h *idleHost) Do(context.Context, host.Key, host.Request) ([]byte, error) { return h.result, nil }

func (h *idleHost) Tools(context.Context, host.Key) (host.Catalog, error) { return h.catalog, nil }

func (h *idleHost) Cached(host.Key) (host.Catalog, bool) { return h.catalog, true }

func benchGate(b *testing.B, result string, cfg *config.Config) *Gate {
	h := &idleHost{result: []byte(result)}
	for i := range 50 {
		h.catalog.Tools = append(h.catalog.Tools, []byte(simpleTool(fmt.Sprint("tool", i))))
	}
	return openGate(b, h, nil, &Options{Config: cfg})
}

var benchParams = []byte(`{"name":"tool7","arguments":{"query":"is:open label:bug","limit":3,"fields":["title","body"]},"_meta":{"progressToken":1}}`)

const benchResult = `{"content":[{"type":"text","text":"0123456789012345678901234567890123456789012345678901234567890123456789"}]}`

func benchCalls(b *testing.B, g *Gate, c Call) {
	b.Helper()
	if _, err := g.Call(context.Background(), c); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Call(context.Background(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall is what the gate adds to a call.
func BenchmarkCall(b *testing.B) {
	rules := configOf([]string{"github/*", "linear/*", "s/tool*"}, []string{"github/delete_*", "*/drop_*"}, config.Server{
		Name: "s", Tools: config.ToolRules{Deny: []string{"tool4*"}},
	})
	budgets := configOf(nil, nil)
	budgets.Usher.Budgets.Total = config.Budget{Calls: 1 << 40, Run: 1 << 40}
	budgets.Usher.Budgets.PerServer = config.Budget{Calls: 1 << 40}
	raw := Call{Key: Key{Server: "s"}, Tool: "tool7", Request: withParams(benchParams)}
	built := Call{Key: Key{Server: "s"}, Tool: "tool7", Arguments: []byte(`{"query":"is:open label:bug"}`)}
	b.Run("nothing applies", func(b *testing.B) { benchCalls(b, benchGate(b, benchResult, nil), raw) })
	b.Run("params built", func(b *testing.B) { benchCalls(b, benchGate(b, benchResult, nil), built) })
	b.Run("rules", func(b *testing.B) { benchCalls(b, benchGate(b, benchResult, rules), raw) })
	b.Run("budgets", func(b *testing.B) { benchCalls(b, benchGate(b, benchResult, budgets), raw) })
	b.Run("pins off", func(b *testing.B) {
		benchCalls(b, benchGate(b, benchResult, configOf(nil, nil, config.Server{Name: "s", Pins: config.PinsOff})), raw)
	})
	b.Run("hit", func(b *testing.B) { benchCalls(b, benchGate(b, `{"content":[],"ttlMs":3600000}`, nil), raw) })
	b.Run("result of 64 KB", func(b *testing.B) {
		benchCalls(b, benchGate(b, fmt.Sprintf(`{"content":[{"type":"text","text":"%065536d"}]}`, 1), nil), raw)
	})
}

func BenchmarkCallParallel(b *testing.B) {
	g := benchGate(b, benchResult, nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Call(context.Background(), Call{Key: Key{Server: "s"}, Tool: "tool7", Request: withParams(benchParams)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTools lists 1,000 tools that have not changed.
func BenchmarkTools(b *testing.B) {
	h := &idleHost{}
	for i := range 1000 {
		h.catalog.Tools = append(h.catalog.Tools, []byte(simpleTool(fmt.Sprint("tool", i))))
	}
	g := openGate(b, h, nil, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Tools(context.Background(), Caller{}, Key{Server: "s"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstTools compares 1,000 remembered tools with their pins, as a process
// does when it starts.
func BenchmarkFirstTools(b *testing.B) {
	h := &idleHost{}
	for i := range 1000 {
		h.catalog.Tools = append(h.catalog.Tools, []byte(fmt.Sprintf(`{"name":"tool%d",%s`, i, mutant[len("{\n  \"name\": \"read_file\","):])))
	}
	g := openGate(b, h, nil, nil)
	ctx := context.Background()
	if _, err := g.Tools(ctx, Caller{}, Key{Server: "s"}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.Forget("s")
		if _, err := g.Tools(ctx, Caller{}, Key{Server: "s"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParamsSum(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		paramsSum(benchParams)
	}
}

func BenchmarkFreshness(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if f := freshness([]byte(benchResult)); f != (mcp.Freshness{}) {
			b.Fatal(f)
		}
	}
}
