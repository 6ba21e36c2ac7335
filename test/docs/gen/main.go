// Command gen writes what of the documents is made from the program: docs/cli.md,
// the generated parts of other pages, and what the demo prints in README.md. With
// -man DIR it writes man pages instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/test/docs"
	"github.com/usher-mcp/usher/test/need"
)

func main() {
	process.Main()
	if len(os.Args) > 1 && os.Args[1] == "fake" { // a server of the demo
		os.Exit(cli.Main(os.Args[1:], cli.System()))
	}
	man := flag.String("man", "", "write man pages into this `directory` instead")
	flag.Parse()
	if err := run(context.Background(), *man); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, man string) error {
	if man != "" {
		return manual(ctx, man)
	}
	root, err := need.Root()
	if err != nil {
		return err
	}
	pages, err := docs.Pages(ctx, root)
	if err != nil {
		return err
	}
	if err := write(root, pages); err != nil {
		return err
	}
	return demo(ctx, filepath.Join(root, "README.md"))
}

func manual(ctx context.Context, dir string) error {
	root, err := docs.Commands(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return write(dir, docs.Manual(root))
}

func write(dir string, pages map[string]string) error {
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// demo brings README.md up to date when more than times has changed.
func demo(ctx context.Context, readme string) error {
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	now, err := docs.Demo(ctx)
	if err != nil {
		return err
	}
	old, page, err := docs.DemoIn(string(text), now)
	if err != nil || docs.MaskTimes(old) == docs.MaskTimes(now) {
		return err
	}
	return os.WriteFile(readme, []byte(page), 0o644)
}
