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
)

func main() {
	process.Main() // first: the program also supervises its own child processes
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	opt := usher.Ephemeral() // no files, nothing written to disk
	opt.Executable = usher.Executable()
	opt.Hook = func(_ context.Context, r policy.HookRequest) policy.Decision {
		return policy.Decision{Allow: r.Tool != "write_file", Reason: "this program only reads"}
	}
	h, err := usher.Open(ctx, opt)
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
	raw, err := h.Call(ctx, "files", "read_text_file", []byte(`{"path": "hello.txt"}`), nil)
	if err != nil {
		return err
	}
	result, err := usher.ParseResult(raw)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, result.Text())
	return err
}
