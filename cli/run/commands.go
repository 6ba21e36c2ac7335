package run

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// Commands returns the commands of this package.
func Commands(f *cmdutil.Factory) []*cobra.Command {
	return []*cobra.Command{
		newCmdTools(f, nil), newCmdDescribe(f, nil), newCmdCall(f, nil), newCmdSearch(f, nil), newCmdDiscover(f, nil), newCmdCard(f, nil), newCmdLogs(f, nil),
	}
}

// Call returns the command call alone: scripts run it over and over, and need no other.
func Call(f *cmdutil.Factory) *cobra.Command { return newCmdCall(f, nil) }
