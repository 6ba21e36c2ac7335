package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/test/need"
)

// public reports whether programs outside this module use a package.
func public(path string) bool {
	room := roomOf(path)
	return !strings.Contains("/"+path+"/", "/internal/") && (path == module || strings.HasPrefix(path, module+"/")) &&
		!slices.Contains([]string{"cli", "cmd", "bench", "test", "tools"}, strings.Split(room, "/")[0])
}

// exported finds the types of internal packages that the exported names of p mention.
func exported(p *types.Package) []string {
	var found []string
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		report := func(where string, t types.Type) {
			for _, hidden := range mentioned(t, map[types.Type]bool{}) {
				found = append(found, where+" mentions "+hidden)
			}
		}
		tn, isType := obj.(*types.TypeName)
		if !isType {
			report(name, obj.Type())
			continue
		}
		named, ok := tn.Type().(*types.Named)
		if !ok {
			report(name, tn.Type()) // an alias
			continue
		}
		report(name, named.Underlying())
		for i := range named.NumMethods() {
			if m := named.Method(i); m.Exported() {
				report(name+"."+m.Name(), m.Type())
			}
		}
	}
	return found
}

// mentioned returns the named types of internal packages that t is made of, as far as
// a reader of the documentation sees it.
func mentioned(t types.Type, seen map[types.Type]bool) []string {
	if t == nil || seen[t] {
		return nil
	}
	seen[t] = true
	var out []string
	each := func(ts ...types.Type) {
		for _, t := range ts {
			out = append(out, mentioned(t, seen)...)
		}
	}
	switch t := t.(type) {
	case *types.Named:
		out = append(out, hiddenName(t.Obj())...)
		for i := range t.TypeArgs().Len() {
			each(t.TypeArgs().At(i))
		}
	case *types.Alias:
		out = append(out, hiddenName(t.Obj())...)
		each(t.Rhs())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				each(f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				each(m.Type())
			}
		}
	case *types.Signature:
		each(t.Params(), t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			each(v.Type())
		}
	case *types.Map:
		each(t.Key(), t.Elem())
	case interface{ Elem() types.Type }:
		each(t.Elem())
	}
	return out
}

// hiddenName is the name of a type of an internal package of this module.
func hiddenName(obj *types.TypeName) []string {
	if p := obj.Pkg(); p != nil && strings.HasPrefix(p.Path(), module) && strings.Contains(p.Path()+"/", "/internal/") {
		return []string{p.Path() + "." + obj.Name()}
	}
	return nil
}

// exportData returns the files that say what the packages of the module export.
func exportData(t *testing.T) map[string]string {
	t.Helper()
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
}

// No exported signature of a public package mentions a type of an internal package: a
// program outside this module could not name it.
func TestPublicSignatures(t *testing.T) {
	files := exportData(t)
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	checked := 0
	for path := range files {
		if !public(path) {
			continue
		}
		p, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, finding := range exported(p) {
			t.Errorf("%s: %s", roomOf(path), finding)
		}
	}
	if checked < 10 {
		t.Errorf("only %d public packages were checked", checked)
	}
}

func TestPublicSignaturesFinds(t *testing.T) {
	inner := types.NewPackage(module+"/internal/wire", "wire")
	frame := types.NewTypeName(token.NoPos, inner, "Frame", nil)
	types.NewNamed(frame, types.Typ[types.Int], nil)
	inner.Scope().Insert(frame)
	inner.MarkComplete()
	for text, want := range map[string]int{
		`func F(f func([]wire.Frame))`:              1,
		`type T struct{ A map[string]*wire.Frame }`: 1,
		`type T struct{ a wire.Frame }`:             0,
		`type T = wire.Frame`:                       1,
		`type T interface{ M() chan wire.Frame }`:   1,
		`type T int; func (T) M(wire.Frame) {}`:     1,
		`type T int; func (T) m(wire.Frame) {}`:     0,
		`func f(wire.Frame)`:                        0,
		`var V wire.Frame`:                          1,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "p.go", fmt.Sprintf("package p\nimport %q\n%s\nvar _ wire.Frame", inner.Path(), text), 0)
		if err != nil {
			t.Fatal(err)
		}
		conf := types.Config{Importer: only{inner}, IgnoreFuncBodies: true}
		p, err := conf.Check(module+"/p", fset, []*ast.File{file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := exported(p); len(got) != want {
			t.Errorf("%s: findings %q, want %d", text, got, want)
		}
	}
}

// only imports one package.
type only struct{ p *types.Package }

func (o only) Import(string) (*types.Package, error) { return o.p, nil }

// twoScreens is how many lines the documentation of the front door may have.
const twoScreens = 100

// The documentation of the root package is short, and a change of it is deliberate. To
// accept one: USHER_UPDATE=1 go test ./test/rules.
func TestFrontDoorDoc(t *testing.T) {
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for _, args := range [][]string{{"doc", "."}, {"doc", "-short", ".", "Host"}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, out...)
	}
	golden := filepath.Join(root, "test", "rules", "testdata", "frontdoor.txt")
	if os.Getenv("USHER_UPDATE") != "" {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("go doc says something else (-want +got):\n%s", diff)
	}
	if n := lines(string(got)); n > twoScreens {
		t.Errorf("%d lines, at most %d", n, twoScreens)
	}
	if n := strings.Count(string(got), "\nfunc (h *Host)"); n > 20 {
		t.Errorf("Host has %d exported methods, at most 20", n)
	}
}
