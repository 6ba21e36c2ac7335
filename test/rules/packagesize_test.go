package rules

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	hardPackageLines   = 4000
	medianPackageLines = 1600
	hardMethods        = 30 // of one type
)

// moreMethods are types that have more methods than hardMethods, by package and name. A
// number here may only shrink.
var moreMethods = map[string]int{
	"auth/bulk.Driver":     48,
	"config.decoder":       39,
	"console.Console":      41,
	"gateway.Gateway":      77,
	"host.Host":            49,
	"host.unit":            72,
	"policy.Gate":          84,
	"surface.Surface":      65,
	"upstream.Conn":        45,
	"vault/sqlstore.Store": 68,
}

// isProduct reports whether a file is part of what usher ships.
func isProduct(s source) bool {
	return !s.isTest() && !strings.HasSuffix(s.room(), "test") &&
		!s.within("bench", "examples", "internal/fake", "internal/torture", "cli/torture", "cmd/usher-torture", "test", "tools")
}

// packageLines counts the lines of each product package.
func packageLines(all []source) map[string]int {
	sizes := map[string]int{}
	for _, s := range all {
		if isProduct(s) {
			sizes[s.room()] += lines(s.text)
		}
	}
	return sizes
}

// bigPackages finds packages that are too large, and reports when most are.
func bigPackages(all []source) []string {
	sizes := packageLines(all)
	if len(sizes) == 0 {
		return nil
	}
	var found []string
	for _, room := range slices.Sorted(maps.Keys(sizes)) {
		if n := sizes[room]; n > hardPackageLines {
			found = append(found, fmt.Sprintf("%s has %d lines, at most %d; split it by subject", room, n, hardPackageLines))
		}
	}
	sorted := slices.Sorted(maps.Values(sizes))
	if m := sorted[len(sorted)/2]; m > medianPackageLines {
		found = append(found, fmt.Sprintf("the median package has %d lines, at most %d", m, medianPackageLines))
	}
	return found
}

func TestPackageSize(t *testing.T) {
	for _, finding := range bigPackages(everySource(t)) {
		t.Error(finding)
	}
}

// methodsOf lists the methods of each type of product packages, by "package.Type". A
// method that has a form for each system counts once.
func methodsOf(all []source) map[string]map[string]bool {
	methods := map[string]map[string]bool{}
	for _, s := range all {
		if !isProduct(s) {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			name := s.room() + "." + receiver(f.Recv.List[0].Type)
			if methods[name] == nil {
				methods[name] = map[string]bool{}
			}
			methods[name][f.Name.Name] = true
		}
	}
	return methods
}

// receiver is the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// manyMethods finds types with too many methods, and exceptions that have shrunk.
func manyMethods(all []source, exceptions map[string]int) []string {
	var found []string
	methods := methodsOf(all)
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		n, most := len(methods[name]), max(hardMethods, exceptions[name])
		if n > most {
			found = append(found, fmt.Sprintf("%s has %d methods, at most %d; move them to the type they are about", name, n, most))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exceptions)) {
		if n := len(methods[name]); n < exceptions[name] {
			found = append(found, fmt.Sprintf("%s has %d methods: lower its number in moreMethods (%d), or remove it", name, n, exceptions[name]))
		}
	}
	return found
}

func TestMethodCount(t *testing.T) {
	for _, finding := range manyMethods(everySource(t), moreMethods) {
		t.Error(finding)
	}
}

func TestPackageSizeRulesFind(t *testing.T) {
	long := func(n int) string { return "package p\n" + strings.Repeat("// x\n", n-1) }
	typ := func(file string, from, to int) probe {
		var b strings.Builder
		b.WriteString("package p\n")
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "func (x *T[A]) m%d() {}\n", i)
		}
		return probe{path: file, text: b.String()}
	}
	count := func(exceptions map[string]int) func([]source) []string {
		return func(all []source) []string { return manyMethods(all, exceptions) }
	}
	small := probe{path: "q/a.go", text: long(1)}
	for _, p := range []struct {
		name  string
		rule  func([]source) []string
		files []probe
		want  int
	}{
		{"package at the limit", bigPackages, []probe{{path: "p/a.go", text: long(2000)}, {path: "p/b.go", text: long(2000)}, small, {path: "r/a.go", text: long(1)}}, 0},
		{"package over it", bigPackages, []probe{{path: "p/a.go", text: long(2000)}, {path: "p/b.go", text: long(2001)}, small, {path: "r/a.go", text: long(1)}}, 1},
		{"its tests", bigPackages, []probe{{path: "p/a_test.go", text: long(5000)}, {path: "test/p/a.go", text: long(5000)}, {path: "p/ptest/a.go", text: long(5000)}, small}, 0},
		{"median", bigPackages, []probe{{path: "p/a.go", text: long(1601)}, {path: "r/a.go", text: long(1601)}, small}, 1},
		{"methods at the limit", count(nil), []probe{typ("p/a.go", 0, 20), typ("p/b.go", 20, 30)}, 0},
		{"methods over it", count(nil), []probe{typ("p/a.go", 0, 20), typ("p/b.go", 20, 31)}, 1},
		{"the same method on two systems", count(nil), []probe{typ("p/a_linux.go", 0, 20), typ("p/a_other.go", 0, 20)}, 0},
		{"two types of one name", count(nil), []probe{typ("p/a.go", 0, 20), typ("q/b.go", 20, 40)}, 0},
		{"methods in tests", count(nil), []probe{typ("p/a.go", 0, 20), typ("p/a_test.go", 20, 40)}, 0},
		{"an exception", count(map[string]int{"p.T": 35}), []probe{typ("p/a.go", 0, 35)}, 0},
		{"an exception that grew", count(map[string]int{"p.T": 35}), []probe{typ("p/a.go", 0, 36)}, 1},
		{"an exception that shrank", count(map[string]int{"p.T": 35}), []probe{typ("p/a.go", 0, 34)}, 1},
	} {
		var all []source
		for _, f := range p.files {
			s, err := parse(f.path, f.text)
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			all = append(all, s)
		}
		if got := p.rule(all); len(got) != p.want {
			t.Errorf("%s: findings %q, want %d", p.name, got, p.want)
		}
	}
}
