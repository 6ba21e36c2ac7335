// Command gen writes what of the documents is made from the program: docs/cli.md and
// the generated parts of other pages. With -man DIR it writes man pages instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/usher-mcp/usher/test/docs"
	"github.com/usher-mcp/usher/test/need"
)

func main() {
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
	return write(root, pages)
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
