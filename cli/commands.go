package cli

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/cli/demo"
	"github.com/usher-mcp/usher/cli/inspect"
	"github.com/usher-mcp/usher/cli/login"
	"github.com/usher-mcp/usher/cli/run"
	"github.com/usher-mcp/usher/cli/serve"
	"github.com/usher-mcp/usher/cli/server"
	"github.com/usher-mcp/usher/cli/setup"
	"github.com/usher-mcp/usher/cli/store"
)

// commands adds every command.
func commands(f *cmdutil.Factory, root *cobra.Command) {
	for _, of := range []func(*cmdutil.Factory) []*cobra.Command{
		login.Commands, serve.Commands, run.Commands, inspect.Commands, server.Commands, setup.Commands, store.Commands, demo.Commands,
	} {
		root.AddCommand(of(f)...)
	}
	root.AddCommand(newCmdVersion(f), newCmdCompletion(f), newCmdTorture())
}
