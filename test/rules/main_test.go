package rules

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/test/need"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const module = "github.com/usher-mcp/usher"

// A pkg is what `go list` says about one package on one system.
type pkg struct {
	ImportPath   string
	Name         string
	Dir          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string

	system string
}

// room is the package's path inside the module; the root package is "usher".
func (p pkg) room() string { return roomOf(p.ImportPath) }

func roomOf(importPath string) string {
	if importPath == module {
		return "usher"
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// systems are those usher is built for: imports of a file for one of them count.
var systems = []string{"linux", "darwin", "windows"}

var packages = sync.OnceValues(func() ([]pkg, error) {
	root, err := need.Root()
	if err != nil {
		return nil, err
	}
	var all []pkg
	for _, system := range systems {
		cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, err
		}
		for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
			p := pkg{system: system}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
})

// everyPackage returns the module's packages, once for each system.
func everyPackage(t *testing.T) []pkg {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if len(all) < 2*len(systems) {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

// A source is one parsed Go file of the repository.
type source struct {
	path string // relative to the checkout, with slashes
	text string
	fset *token.FileSet
	file *ast.File
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// room is the folder of the file as rules name it.
func (s source) room() string {
	dir := filepath.ToSlash(filepath.Dir(s.path))
	if dir == "." {
		return "usher"
	}
	return dir
}

func (s source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

// within reports whether the file lies in one of the rooms or below one.
func (s source) within(rooms ...string) bool {
	for _, r := range rooms {
		if s.room() == r || strings.HasPrefix(s.room(), r+"/") {
			return true
		}
	}
	return false
}

var sources = sync.OnceValues(func() ([]source, error) {
	var all []source
	names, err := tracked("*.go")
	if err != nil {
		return nil, err
	}
	root, err := need.Root()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return nil, err
		}
		s, err := parse(name, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
})

// everySource returns the repository's Go files of every system.
func everySource(t *testing.T) []source {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found only %d Go files", len(all))
	}
	return all
}

func parse(name, text string) (source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	return source{path: name, text: text, fset: fset, file: file}, err
}

// tracked lists the files git knows or would add, relative to the checkout.
// Files of test data are not sources.
func tracked(patterns ...string) ([]string, error) {
	root, err := need.Root()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("git", append([]string{"ls-files", "-z", "-co", "--exclude-standard", "--"}, patterns...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(errors.New("git ls-files (the rules need a git checkout)"), err)
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if name != "" && !(strings.HasSuffix(name, ".go") && strings.Contains("/"+name, "/testdata/")) {
			names = append(names, name)
		}
	}
	return names, nil
}

// apply runs a rule over every source.
func apply(t *testing.T, rule func(source) []string) {
	t.Helper()
	for _, s := range everySource(t) {
		for _, finding := range rule(s) {
			t.Errorf("%s: %s", s.path, finding)
		}
	}
}

// A probe is a source that a rule must, or must not, find something in.
type probe struct {
	name, path, text string
	want             int // findings
}

// try runs a rule over made-up sources.
func try(t *testing.T, rule func(source) []string, probes []probe) {
	t.Helper()
	for _, p := range probes {
		s, err := parse(p.path, p.text)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		if got := rule(s); len(got) != p.want {
			t.Errorf("%s: findings %q, want %d", p.name, got, p.want)
		}
	}
}
