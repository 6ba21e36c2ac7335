package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
)

// exampleMark is where a function of examples/host stands in docs/embedding.md.
var exampleMark = regexp.MustCompile(`<!-- begin (example ([a-zA-Z]+)) -->`)

// fillExamples puts functions of examples/host into docs/embedding.md: test/example
// compiles and runs them.
func fillExamples(root string, pages map[string]string) error {
	const page = "docs/embedding.md"
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return err
	}
	functions, err := exampleFunctions(filepath.Join(root, "examples", "host"))
	if err != nil {
		return err
	}
	for _, mark := range exampleMark.FindAllStringSubmatch(string(text), -1) {
		code, ok := functions[mark[2]]
		if !ok {
			return fmt.Errorf("%s: examples/host has no function %s", page, mark[2])
		}
		if err := fillPage(root, pages, page, mark[1], "```go\n"+code+"\n```\n"); err != nil {
			return err
		}
	}
	return nil
}

// exampleFunctions returns the functions of a directory by name, with their comments.
func exampleFunctions(dir string) (map[string]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from := f.Pos()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			out[f.Name.Name] = string(text[fset.Position(from).Offset:fset.Position(f.End()).Offset])
		}
	}
	return out, nil
}
