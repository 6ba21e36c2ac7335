package run

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// Commands returns the commands of this package.
func Commands(f *cmdutil.Factory) []*cobra.Command {
	return []*cobra.Command{
		newCmdTools(f), newCmdDescribe(f), newCmdCall(f), newCmdSearch(f), newCmdDiscover(f), newCmdCard(f), newCmdLogs(f),
	}
}

// Call returns the command call alone: scripts run it over and over, and need no other.
func Call(f *cmdutil.Factory) *cobra.Command { return newCmdCall(f) }
