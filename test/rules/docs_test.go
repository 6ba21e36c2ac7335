package rules

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// TestPackageDocs wants one package comment in every package, that begins as
// Go tools expect.
func TestPackageDocs(t *testing.T) {
	docs := map[string]string{}
	names := map[string]string{}
	for _, s := range everySource(t) {
		if s.isTest() || s.within("tools") {
			continue
		}
		names[s.room()] = s.file.Name.Name
		if s.file.Doc != nil {
			docs[s.room()] += s.file.Doc.Text()
		}
	}
	for room, name := range names {
		if problem := packageDoc(room, name, docs[room]); problem != "" {
			t.Errorf("%s: %s", room, problem)
		}
	}
}

func packageDoc(room, name, doc string) string {
	want := "Package " + name + " "
	if name == "main" {
		want = "Command " + filepath.Base(room) + " "
	}
	switch {
	case doc == "":
		return "has no package comment: say what it owns, what it refuses to own, and its flow"
	case !strings.HasPrefix(doc, want):
		return fmt.Sprintf("package comment does not begin with %q", want)
	}
	return ""
}

func TestPackageDocFinds(t *testing.T) {
	for _, tt := range []struct {
		room, name, doc string
		ok              bool
	}{
		{"host", "host", "Package host runs servers.\n", true},
		{"host", "host", "", false},
		{"host", "host", "Host runs servers.\n", false},
		{"cmd/usher", "main", "Command usher is the binary.\n", true},
		{"cmd/usher", "main", "Package main.\n", false},
	} {
		if got := packageDoc(tt.room, tt.name, tt.doc); (got == "") != tt.ok {
			t.Errorf("packageDoc(%q, %q, %q) = %q", tt.room, tt.name, tt.doc, got)
		}
	}
}

// undocumented finds exported names without a comment. The comment of a group
// covers constants and variables in it, not types.
func undocumented(s source) []string {
	if s.isTest() || s.file.Name.Name == "main" {
		return nil
	}
	var found []string
	missing := func(n ast.Node, name string) {
		found = append(found, fmt.Sprintf("line %d: exported %s has no doc comment", s.line(n), name))
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && receiverExported(d) && !wellKnown(d) {
				missing(d, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if name := undocumentedSpec(d, spec); name != "" {
					missing(spec, name)
				}
			}
		}
	}
	return found
}

// undocumentedSpec returns the exported name in spec that has no comment.
func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) string {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && spec.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
			return spec.Name.Name
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() && spec.Doc == nil && spec.Comment == nil && d.Doc == nil {
				return name.Name
			}
		}
	}
	return ""
}

// receiverExported reports whether a method can be reached by its type's name;
// a function always can. Methods that satisfy an interface on an unexported
// type need no comment of their own.
func receiverExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	typ := f.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// wellKnown reports whether a method's contract is the standard library's.
func wellKnown(f *ast.FuncDecl) bool {
	switch f.Name.Name {
	case "Error", "Unwrap", "Is", "As", "String", "GoString", "LogValue", "MarshalJSON", "UnmarshalJSON",
		"MarshalText", "UnmarshalText", "Len", "Less", "Swap":
		return f.Recv != nil
	}
	return false
}

func TestExportedNamesAreDocumented(t *testing.T) { apply(t, undocumented) }

func TestUndocumentedFinds(t *testing.T) {
	try(t, undocumented, []probe{
		{"function", "p/a.go", "package p\nfunc F() {}\n", 1},
		{"documented", "p/a.go", "package p\n// F is.\nfunc F() {}\n", 0},
		{"method", "p/a.go", "package p\n// T is.\ntype T[K any] struct{}\nfunc (t *T[K]) M() {}\n", 1},
		{"method of an unexported type", "p/a.go", "package p\ntype t struct{}\nfunc (t) Error() string { return \"\" }\n", 0},
		{"method everyone knows", "p/a.go", "package p\n// T is.\ntype T int\nfunc (T) Error() string { return \"\" }\n", 0},
		{"function of that name", "p/a.go", "package p\nfunc Error() {}\n", 1},
		{"type in a group", "p/a.go", "package p\n// Types.\ntype (\n\tT int\n)\n", 1},
		{"constant in a group", "p/a.go", "package p\n// States.\nconst (\n\tA = 1\n\tB = 2\n)\n", 0},
		{"bare variable", "p/a.go", "package p\nvar Err = 1\n", 1},
		{"test file", "p/a_test.go", "package p\nfunc F() {}\n", 0},
	})
}

func TestAgentsFileIsShort(t *testing.T) {
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "AGENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := lines(string(text)); n > hardAgentLines {
		t.Errorf("AGENTS.md has %d lines, at most %d", n, hardAgentLines)
	}
}
