package rules

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// called returns the package or variable and the name of a call like fmt.Print.
func called(n ast.Node) (on, name string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return x.Name, sel.Sel.Name
}

// calls finds the calls of a file that match, by the name they are written with.
func calls(s source, match *regexp.Regexp, why string) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if on, name := called(n); on != "" && match.MatchString(on+"."+name) {
			found = append(found, fmt.Sprintf("line %d: %s.%s; %s", s.line(n), on, name, why))
		}
		return true
	})
	return found
}

var printing = regexp.MustCompile(`^(fmt\.Print(f|ln)?|log\.(Print|Fatal|Panic)(f|ln)?)$`)

// printed finds output that a library has no business with. Test files may
// print: some play a child process.
func printed(s source) []string {
	if s.isTest() || s.within("cli", "cmd", "bench", "test") {
		return nil
	}
	return calls(s, printing, "only cli prints; return an error, or log with slog")
}

func TestNoPrinting(t *testing.T) { apply(t, printed) }

// inits finds init functions: what a program does must be visible from main.
func inits(s source) []string {
	var found []string
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			found = append(found, fmt.Sprintf("line %d: init function", s.line(f)))
		}
	}
	return found
}

func TestNoInit(t *testing.T) { apply(t, inits) }

var skipping = regexp.MustCompile(`^(t|tb|b|f)\.Skip(f|Now)?$`)

// skipped finds tests that leave themselves out.
func skipped(s source) []string {
	if s.within("test/need") {
		return nil
	}
	return calls(s, skipping, "only test/need may skip: use what it offers, or a build constraint")
}

func TestNoSkipping(t *testing.T) { apply(t, skipped) }

// sleeps finds real waiting in tests. Inside a synctest bubble time is not
// real; helpers in a file that uses synctest are taken to be called in one.
func sleeps(s source) []string {
	if !s.isTest() {
		return nil
	}
	usesBubble := false
	for _, imp := range s.file.Imports {
		usesBubble = usesBubble || imp.Path.Value == `"testing/synctest"`
	}
	var found []string
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || usesBubble && !isTestFunc(f.Name.Name) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch on, name := called(n); on + "." + name {
			case "synctest.Test":
				return false
			case "time.Sleep":
				found = append(found, fmt.Sprintf("line %d: time.Sleep in a test; use testing/synctest, or wait for the thing itself", s.line(n)))
			}
			return true
		})
	}
	return found
}

func isTestFunc(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Benchmark") || strings.HasPrefix(name, "Fuzz")
}

func TestNoSleeping(t *testing.T) { apply(t, sleeps) }

func TestForbiddenRulesFind(t *testing.T) {
	try(t, printed, []probe{
		{"fmt", "host/a.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", 1},
		{"log.Fatal", "host/a.go", "package p\nimport \"log\"\nfunc f() { log.Fatalf(\"\") }\n", 1},
		{"Fprint is given a writer", "host/a.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Fprintln(nil) }\n", 0},
		{"a child in a test", "host/a_test.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", 0},
		{"cli", "cli/a.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", 0},
		{"name that only begins alike", "client/a.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", 1},
	})
	try(t, inits, []probe{
		{"init", "host/a.go", "package p\nfunc init() {}\n", 1},
		{"method", "host/a.go", "package p\ntype t int\nfunc (t) init() {}\n", 0},
	})
	try(t, skipped, []probe{
		{"skip", "host/a_test.go", "package p\nfunc f() { t.Skip() }\n", 1},
		{"need", "test/need/need.go", "package p\nfunc f() { t.Skipf(\"\") }\n", 0},
	})
	try(t, sleeps, []probe{
		{"sleep", "p/a_test.go", "package p\nfunc TestX() { time.Sleep(1) }\n", 1},
		{"helper", "p/a_test.go", "package p\nfunc wait() { time.Sleep(1) }\n", 1},
		{"code", "p/a.go", "package p\nfunc f() { time.Sleep(1) }\n", 0},
		{"bubble", "p/a_test.go", "package p\nimport \"testing/synctest\"\nfunc TestX() { synctest.Test(t, func() { time.Sleep(1) }) }\n", 0},
		{"beside a bubble", "p/a_test.go", "package p\nimport \"testing/synctest\"\nfunc TestX() { synctest.Test(t, f); time.Sleep(1) }\n", 1},
		{"helper of a bubble", "p/a_test.go", "package p\nimport \"testing/synctest\"\nfunc wait() { synctest.Wait(); time.Sleep(1) }\n", 0},
	})
}
