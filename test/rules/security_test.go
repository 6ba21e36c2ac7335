package rules

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

// TestSecurityTestsExist wants every test that docs/security.md names.
func TestSecurityTestsExist(t *testing.T) {
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, s := range everySource(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.isTest() && f.Recv == nil {
				tests[s.room()+"."+f.Name.Name] = true
			}
		}
	}
	named := regexp.MustCompile("`([a-z0-9/]+\\.Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 40 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !tests[m[1]] {
			t.Errorf("docs/security.md names %s, which does not exist", m[1])
		}
	}
}
