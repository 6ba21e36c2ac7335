package mcp

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// TestMethodsCostNothing reads every method constant of the package's source and
// makes sure that a message with it allocates no string: who adds a constant must
// add it to the switch.
func TestMethodsCostNothing(t *testing.T) {
	for _, method := range methodConstants(t) {
		raw := jsonx.Quote(method)
		if got, bad := readMethod(raw); got != method || bad != "" {
			t.Errorf("readMethod(%s) = %q, %q", raw, got, bad)
		}
		if n := testing.AllocsPerRun(10, func() { _, _ = readMethod(raw) }); n != 0 {
			t.Errorf("%s costs %v allocations", method, n)
		}
	}
}

func methodConstants(t *testing.T) (out []string) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "method.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && strings.HasPrefix(spec.Names[0].Name, "Method") {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, text)
		}
		return true
	})
	if len(out) < 25 {
		t.Fatalf("only %d method constants were found", len(out))
	}
	return out
}

func TestParseAllocatesOnlyTheID(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		max      float64
	}{
		{"request", `{"jsonrpc":"2.0","id":123,"method":"tools/call","params":{"name":"t","arguments":{"a":["x",1,null]}}}`, 1},
		{"one digit", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 0},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`, 0},
		{"response", `{"jsonrpc":"2.0","id":123,"result":{"content":[{"type":"text","text":"a\nb"}]}}`, 1},
		{"unknown method", `{"jsonrpc":"2.0","id":123,"method":"x/y"}`, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			raw := []byte(tt.in)
			got := testing.AllocsPerRun(100, func() {
				if _, err := Parse(raw); err != nil {
					t.Fatal(err)
				}
			})
			if got > tt.max {
				t.Errorf("%v allocations, want at most %v", got, tt.max)
			}
		})
	}
}
