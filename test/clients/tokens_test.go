package clients

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/test/need"
	"github.com/usher-mcp/usher/vault"
)

// What the one tool of the meta surface may cost an agent.
const (
	mostBytes  = 2800
	mostTokens = 700
)

// The definition costs the same with one tool behind it and with a thousand, in
// bytes and in tokens as models count them.
func TestMetaToolCost(t *testing.T) {
	few, many := metaTool(t, 1), metaTool(t, 1000)
	if diff := cmp.Diff(few, many); diff != "" {
		t.Errorf("(-one tool +a thousand):\n%s", diff)
	}
	if len(few) > mostBytes {
		t.Errorf("%d bytes, want at most %d", len(few), mostBytes)
	}
	tokens := countTokens(t, few)
	for _, n := range tokens {
		if n > mostTokens || n < 100 {
			t.Errorf("%d tokens, want at most %d", n, mostTokens)
		}
	}
	t.Logf("%d bytes, %v tokens", len(few), tokens)
}

// metaTool is the definition that an agent gets with n tools behind it.
func metaTool(t *testing.T, n int) string {
	t.Helper()
	var tools []fake.Tool
	for i := range n {
		tools = append(tools, fake.Tool{Def: fmt.Appendf(nil, `{"name":"tool_%d","description":"The tool with number %[1]d","inputSchema":{"type":"object"}}`, i)})
	}
	f := fake.New(&fake.Options{Name: "many", Tools: tools})
	url, stop, err := f.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	srv := config.Server{Name: "many", Transport: config.TransportHTTP, URL: url + "/mcp"}
	h, err := app.Open(t.Context(), &app.Options{
		Config: &config.Config{Usher: config.DefaultSettings(), Servers: []config.Server{srv.WithDefaults()}}, Store: vault.NewMemory(),
		Load: config.LoadOptions{System: config.System{Home: t.TempDir(), Workdir: t.TempDir()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if list, err := h.Tools(t.Context(), "many"); err != nil || len(list.Tools) != n {
		t.Fatalf("%d tools, want %d: %v", len(list.Tools), n, err)
	}
	result, err := h.Frontend().Surface().Meta().Do(t.Context(), surface.Agent{Version: mcp.V20260728}, mcp.Request{Method: mcp.MethodToolsList})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := jsonx.Get(result, "tools")
	var defs []string
	for e := jsonx.Array(list); e.Next(); {
		defs = append(defs, string(e.Value))
	}
	if len(defs) != 1 {
		t.Fatalf("%d tools are shown", len(defs))
	}
	return defs[0]
}

// countTokens counts with npm's gpt-tokenizer.
func countTokens(t *testing.T, line string) []int {
	t.Helper()
	c := exec.CommandContext(t.Context(), need.Node(t), "testdata/tokens.mjs", need.Package(t, "gpt-tokenizer"))
	c.Stdin, c.Stderr = bytes.NewReader([]byte(line+"\n")), t.Output()
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var tokens []int
	answers(t, bytes.NewReader(out), func(counts []int) bool {
		tokens = counts
		return false
	})
	if len(tokens) != 2 {
		t.Fatalf("%s", out)
	}
	return tokens
}
