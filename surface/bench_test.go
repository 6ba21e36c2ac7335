package surface

import (
	"fmt"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/mcp"
)

// thousand is a surface with 1,000 known tools of 20 servers, none of them running.
func thousand(b *testing.B) *rig {
	known := &memory{tools: map[host.Key]host.Catalog{}}
	var servers []config.Server
	for i := range 20 {
		name := fmt.Sprintf("server%02d", i)
		servers = append(servers, config.Server{Name: name, Transport: config.TransportHTTP, URL: "http://127.0.0.1:1/mcp"})
		known.tools[host.Key{Principal: local, Server: name}] = bigCatalog(50, i)
	}
	return start(b, servers, options{}, func(_ *config.Config, o *host.Options) { o.Memory = known })
}

func bench(b *testing.B, v View, a Agent, method, params string) {
	b.Helper()
	raw := []byte(params)
	if _, err := v.Do(b.Context(), a, mcp.Request{Method: method, Params: raw}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Do(b.Context(), a, mcp.Request{Method: method, Params: raw}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	w := thousand(b)
	b.Run("older", func(b *testing.B) { bench(b, w.Direct(), legacyAgent, mcp.MethodToolsList, `{}`) })
	b.Run("modern", func(b *testing.B) { bench(b, w.Direct(), modernAgent, mcp.MethodToolsList, `{}`) })
	b.Run("meta", func(b *testing.B) { bench(b, w.Meta(), modernAgent, mcp.MethodToolsList, `{}`) })
}

// BenchmarkFirstList is the price of a change: everything is prepared again.
func BenchmarkFirstList(b *testing.B) {
	w := thousand(b)
	sources := w.snapshot(b.Context(), (&endpoint{s: w.Surface}).agent(Agent{})).sources
	b.ReportAllocs()
	for b.Loop() {
		newSnapshot(sources, false, w.names, true)
	}
}

func BenchmarkMeta(b *testing.B) {
	w := thousand(b)
	tool := names(string(bigCatalogTools()), "tools", "name")[0]
	for _, action := range []struct{ name, args string }{
		{"help", `{"action":"help"}`},
		{"list_servers", `{"action":"list_servers"}`},
		{"search", `{"action":"search","query":"create the issue in project7 for a user"}`},
		{"list_tools", `{"action":"list_tools","server":"server07"}`},
		{"describe_tool", `{"action":"describe_tool","server":"server07","tool":"` + tool + `"}`},
		{"status", `{"action":"status"}`},
		{"error", `{"action":"describe_tool","server":"server07","tool":"nothing_like_it"}`},
	} {
		b.Run(action.name, func(b *testing.B) {
			bench(b, w.Meta(), modernAgent, mcp.MethodToolsCall, `{"name":"mcp","arguments":`+action.args+`}`)
		})
	}
}

func bigCatalogTools() []byte {
	out := []byte(`{"tools":[`)
	for i, def := range bigCatalog(50, 7).Tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, def...)
	}
	return append(out, `]}`...)
}

// BenchmarkCall is the way of a call through the views, with a server on the
// loopback interface at its end.
func BenchmarkCall(b *testing.B) {
	srv, _ := serve(b, "s", fake.Options{Versions: modernOnly})
	w := start(b, []config.Server{srv}, options{}, nil)
	single, err := w.Server(b.Context(), modernAgent, "s")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("single", func(b *testing.B) {
		bench(b, single, modernAgent, mcp.MethodToolsCall, `{"name":"echo","arguments":{"a":1}}`)
	})
	b.Run("direct", func(b *testing.B) {
		bench(b, w.Direct(), modernAgent, mcp.MethodToolsCall, `{"name":"s__echo","arguments":{"a":1}}`)
	})
	b.Run("meta", func(b *testing.B) {
		bench(b, w.Meta(), modernAgent, mcp.MethodToolsCall, `{"name":"mcp","arguments":{"action":"call","server":"s","tool":"echo","arguments":{"a":1}}}`)
	})
	b.Run("page", func(b *testing.B) { bench(b, single, modernAgent, mcp.MethodToolsList, `{}`) })
}
