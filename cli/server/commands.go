package server

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// Commands returns the commands of this package.
func Commands(f *cmdutil.Factory) []*cobra.Command {
	return []*cobra.Command{
		newCmdAdd(f, nil), newCmdRemove(f, nil), newCmdList(f, nil), newCmdApprove(f, nil), newCmdAllow(f, nil), newCmdDeny(f, nil),
	}
}
