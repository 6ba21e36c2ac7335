// Command embed calls a tool through usher, used as a library.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/vault"
)

func main() {
	process.Main() // first: this program is also the guard around each child
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	h, err := usher.Open(ctx, &usher.Options{
		Config:     &config.Config{Usher: config.DefaultSettings()}, // no files
		Store:      vault.NewMemory(),                               // nothing is kept
		Executable: usher.Executable(),
		Hook: func(_ context.Context, r policy.HookRequest) policy.Decision {
			return policy.Decision{Allow: r.Tool != "write_file", Reason: "this program only reads"}
		},
	})
	if err != nil {
		return err
	}
	defer h.Close()

	err = h.Spawn(ctx, config.Server{
		Name:    "files",
		Command: "npx",
		Args:    []string{"-y", "@modelcontextprotocol/server-filesystem", "."},
	}, nil)
	if err != nil {
		return err
	}
	result, err := h.Call(ctx, "files", "read_text_file", []byte(`{"path": "hello.txt"}`), nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", result) // the server's own bytes
	return err
}
