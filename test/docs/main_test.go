package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/cli/torture"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/test/docs/standin"
	"github.com/usher-mcp/usher/test/need"
)

var update = flag.Bool("update", false, "write what commands print into the pages, where it is not what they say")

type runner func() int

func (r runner) Run() int { return r() }

func TestMain(m *testing.M) {
	process.Main() // the guard around a child is this binary too
	if len(os.Args) > 1 && os.Args[1] == "fake" {
		// A server of the demo, which starts the program it runs in.
		syscall.Exit(fake.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	playing := func() { syscall.Exit(standin.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
	testscript.Main(runner(func() int {
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
		return code
	}), map[string]func(){
		"usher":         func() { os.Exit(cli.Main(os.Args[1:], cli.System())) },
		"usher-torture": func() { os.Exit(torture.Main(os.Args[1:], cli.System())) },
		"fake":          func() { syscall.Exit(fake.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"npx":           playing, "uvx": playing,
		"locked": func() { syscall.Exit(standin.Locked(os.Args[1:], os.Stdout, os.Stderr)) },
		"visit":  func() { syscall.Exit(standin.Visit(os.Args[1:], os.Stderr)) },
	})
}

// page is one document.
type page struct{ name, path, text string }

// pages returns README.md and what is in docs/.
func pages(t *testing.T) []page {
	t.Helper()
	root := checkout(t)
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no pages in docs/: %v", err)
	}
	var out []page
	for _, path := range append([]string{filepath.Join(root, "README.md")}, paths...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page{name: filepath.Base(path), path: path, text: string(text)})
	}
	return out
}

func checkout(t *testing.T) string {
	t.Helper()
	root, err := need.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}
