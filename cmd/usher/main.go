// Command usher is the host between agents and many MCP servers.
package main

import (
	"os"

	"github.com/usher-mcp/usher/cli"
	"github.com/usher-mcp/usher/process"
)

func main() {
	process.Main() // returns at once unless this is the guard around a child
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}
