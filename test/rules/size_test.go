package rules

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

const (
	wantedFileLines = 400 // above it, the test says so
	hardFileLines   = 600
	hardFuncLines   = 80
	hardTestLines   = 160 // tables are long
	hardAgentLines  = 80  // of AGENTS.md
)

func lines(text string) int { return strings.Count(text, "\n") }

func longFile(s source) []string {
	if n := lines(s.text); n > hardFileLines {
		return []string{fmt.Sprintf("%d lines, at most %d; split it by subject", n, hardFileLines)}
	}
	return nil
}

func TestFileSize(t *testing.T) {
	apply(t, longFile)
	for _, s := range everySource(t) {
		if n := lines(s.text); n > wantedFileLines && n <= hardFileLines {
			t.Logf("%s has %d lines; %d is the aim", s.path, n, wantedFileLines)
		}
	}
}

// longFunctions counts from the line of "func" to the closing brace.
func longFunctions(s source) []string {
	limit := hardFuncLines
	if s.isTest() {
		limit = hardTestLines
	}
	var found []string
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		first := s.fset.Position(f.Type.Func).Line
		if n := s.fset.Position(f.End()).Line - first + 1; n > limit {
			found = append(found, fmt.Sprintf("line %d: %s has %d lines, at most %d", first, f.Name.Name, n, limit))
		}
	}
	return found
}

func TestFunctionSize(t *testing.T) { apply(t, longFunctions) }

func TestSizeRulesFind(t *testing.T) {
	body := func(n int) string { return "package p\nfunc f() {\n" + strings.Repeat("\tf()\n", n-2) + "}\n" }
	try(t, longFile, []probe{
		{"at the limit", "p/a.go", "package p\n" + strings.Repeat("// x\n", hardFileLines-1), 0},
		{"over it", "p/a.go", "package p\n" + strings.Repeat("// x\n", hardFileLines), 1},
		{"tests too", "p/a_test.go", "package p\n" + strings.Repeat("// x\n", hardFileLines), 1},
	})
	try(t, longFunctions, []probe{
		{"at the limit", "p/a.go", body(hardFuncLines), 0},
		{"over it", "p/a.go", body(hardFuncLines + 1), 1},
		{"a long table", "p/a_test.go", body(hardTestLines), 0},
		{"too long for a test", "p/a_test.go", body(hardTestLines + 1), 1},
	})
}
