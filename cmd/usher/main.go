// Command usher is the host between agents and many MCP servers.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/process"
)

func main() {
	process.Main() // returns at once unless this is the shim around a child
	if err := errors.Join(process.Conceal(), process.Adopt()); err != nil {
		fmt.Fprintln(os.Stderr, "usher:", err)
	}
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}
