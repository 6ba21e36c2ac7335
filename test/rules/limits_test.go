package rules

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/limit"
)

// TestLimitsAreListed wants a row in limit.Table for every constant of
// internal/limit.
func TestLimitsAreListed(t *testing.T) {
	listed := map[string]bool{}
	for _, r := range limit.Table() {
		listed[r.Name] = true
		if r.Who == "" || r.What == "" || r.Then == "" || r.Value == nil {
			t.Errorf("limit.%s: the row is incomplete: %+v", r.Name, r)
		}
	}
	for _, s := range everySource(t) {
		if s.room() != "internal/limit" || s.isTest() {
			continue
		}
		for _, name := range constants(s) {
			if !listed[name] {
				t.Errorf("limit.%s has no row in limit.Table", name)
			}
		}
	}
}

// TestLimitsAreTested wants the test that each row of limit.Table names.
func TestLimitsAreTested(t *testing.T) {
	tests := map[string]bool{}
	for _, s := range everySource(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.isTest() && f.Recv == nil {
				tests[s.room()+"."+f.Name.Name] = true
			}
		}
	}
	for _, r := range limit.Table() {
		if !tests[r.Test] {
			t.Errorf("limit.%s: there is no test %q", r.Name, r.Test)
		}
	}
}

// constants returns the exported constants of a file.
func constants(s source) []string {
	var out []string
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.IsExported() && !strings.HasPrefix(name.Name, "_") {
					out = append(out, name.Name)
				}
			}
		}
	}
	return out
}
