package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
)

// TestEveryMethodHasARule reads the methods of package mcp: a new one without a
// row in the table fails here, so that nobody forgets to decide who may use it.
func TestEveryMethodHasARule(t *testing.T) {
	found := 0
	files, err := filepath.Glob("../mcp/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(gotoken.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Method") {
				return true
			}
			lit, ok := spec.Values[0].(*ast.BasicLit)
			method := ""
			if ok {
				method = strings.Trim(lit.Value, `"`)
			}
			switch {
			case method == "", strings.HasPrefix(method, "notifications/"):
			case method == "sampling/createMessage", method == "elicitation/create", method == "roots/list": // a server asks these
			case methods[method] == 0:
				t.Errorf("%s (%s) has no rule in methods", spec.Names[0].Name, method)
			default:
				found++
			}
			return true
		})
	}
	if found != len(methods) {
		t.Errorf("%d methods were found in package mcp, and %d have rules", found, len(methods))
	}
}

func TestScopedListsAreBounded(t *testing.T) {
	set, err := newToolset(t.Context(), Catalog{Tools: [][]byte{[]byte(simpleTool("a"))}}, "off", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := compileRules(config.Settings{}, nil)
	k := Key{Server: "s"}
	for i := range limit.ScopedLists + 10 {
		set.under(r, k, NewScope(nil, []string{fmt.Sprint("a", i)}))
	}
	if n := len(set.allowed.Load().scoped); n > limit.ScopedLists {
		t.Errorf("%d filtered lists are kept", n)
	}
}

func TestToolPagesAreBounded(t *testing.T) {
	var p pages
	for i := range limit.ToolPages + 10 {
		p.put(pageKey{scope: fmt.Sprint(i)}, nil, nil, nil)
	}
	if len(p.all) > limit.ToolPages {
		t.Errorf("%d pages are kept", len(p.all))
	}
}
