package serve

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// Commands returns the commands of this package.
func Commands(f *cmdutil.Factory) []*cobra.Command {
	return []*cobra.Command{
		newCmdServe(f, nil), newCmdConsole(f, nil), newCmdReload(f, nil), newCmdStop(f, nil), newCmdHold(f, nil),
	}
}
