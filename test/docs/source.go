package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sources are the parsed files of one folder, for what the code does not tell at
// run time: the keys that a decoder knows, and the values of constants.
type sources struct {
	dir   string
	files []*ast.File
}

func readSources(root, dir string) (sources, error) {
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(names) == 0 {
		return sources{}, fmt.Errorf("no Go files in %s: %w", dir, err)
	}
	s := sources{dir: dir}
	fset := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return sources{}, err
		}
		s.files = append(s.files, f)
	}
	return s, nil
}

// mentions returns a function that says whether a text stands in the code that
// uses the configuration: of every package but config itself and the tests.
func mentions(root string) (func(text string) bool, error) {
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path) // path is below root
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == "config" || rel == "test" || rel == filepath.Join("auth", "bulk") || rel != "." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	return func(text string) bool { return strings.Contains(all.String(), text) }, err
}

func (s sources) function(name string) *ast.FuncDecl {
	for _, f := range s.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == name {
				return fn
			}
		}
	}
	return nil
}

// keys lists the string keys of the first map literal in a function.
func (s sources) keys(function string) []string {
	var out []string
	for key := range s.entries(function) {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// entries returns the first map literal in a function.
func (s sources) entries(function string) map[string]ast.Expr {
	fn := s.function(function)
	if fn == nil {
		return nil
	}
	var lit *ast.CompositeLit
	ast.Inspect(fn, func(n ast.Node) bool {
		if l, ok := n.(*ast.CompositeLit); ok && lit == nil && isMap(l) {
			lit = l
		}
		return lit == nil
	})
	return members(lit)
}

func isMap(l *ast.CompositeLit) bool {
	_, ok := l.Type.(*ast.MapType)
	return ok
}

func members(l *ast.CompositeLit) map[string]ast.Expr {
	out := map[string]ast.Expr{}
	if l == nil {
		return out
	}
	for _, e := range l.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := kv.Key.(*ast.BasicLit); ok {
			if text, err := strconv.Unquote(key.Value); err == nil {
				out[text] = kv.Value
			}
		}
	}
	return out
}

// serverKeys lists the dotted keys that a server may have, those of objects after
// the object.
func (s sources) serverKeys() []string { return s.below("", s.entries("serverKeys")) }

func (s sources) below(prefix string, entries map[string]ast.Expr) []string {
	var out []string
	for key, value := range entries {
		out = append(out, prefix+key)
		call, ok := value.(*ast.CallExpr)
		if !ok {
			continue
		}
		inner := map[string]ast.Expr{}
		for _, arg := range call.Args {
			if lit, ok := arg.(*ast.CompositeLit); ok && isMap(lit) {
				inner = members(lit)
			}
		}
		// A decoder of its own, such as that of "oauth".
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && len(inner) == 0 {
			inner = s.entries(sel.Sel.Name)
		}
		out = append(out, s.below(prefix+key+".", inner)...)
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return out
}

// sortKey puts what a server is reached by first, and then goes by name.
func sortKey(path string) string {
	first := []string{"type", "transport", "command", "args", "env", "cwd", "url", "headers", "headersFrom"}
	if i := slices.Index(first, path); i >= 0 {
		return fmt.Sprintf(" %02d", i)
	}
	return path
}

// constant returns the value of a constant that is written as a number, a product,
// a shift or a multiple of a unit of time.
func (s sources) constant(name string) (string, error) {
	for _, f := range s.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				i := slices.IndexFunc(v.Names, func(id *ast.Ident) bool { return id.Name == name })
				if i < 0 || i >= len(v.Values) {
					continue
				}
				n, isTime, err := evaluate(v.Values[i])
				if err != nil {
					return "", fmt.Errorf("%s.%s: %w", s.dir, name, err)
				}
				if isTime {
					return shortDuration(time.Duration(n)), nil
				}
				return size(n), nil
			}
		}
	}
	return "", fmt.Errorf("there is no constant %s in %s", name, s.dir)
}

var units = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

func evaluate(e ast.Expr) (n int64, isTime bool, err error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err = strconv.ParseInt(e.Value, 0, 64)
		return n, false, err
	case *ast.SelectorExpr:
		if unit, ok := units[e.Sel.Name]; ok {
			return int64(unit), true, nil
		}
	case *ast.BinaryExpr:
		x, xTime, err := evaluate(e.X)
		if err != nil {
			return 0, false, err
		}
		y, yTime, err := evaluate(e.Y)
		if err != nil {
			return 0, false, err
		}
		switch e.Op {
		case token.MUL:
			return x * y, xTime || yTime, nil
		case token.SHL:
			return x << y, false, nil
		case token.ADD:
			return x + y, xTime || yTime, nil
		}
	}
	return 0, false, fmt.Errorf("cannot be read by this generator")
}
