package store

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// Commands returns the commands of this package.
func Commands(f *cmdutil.Factory) []*cobra.Command {
	return []*cobra.Command{
		newCmdToken(f), newCmdSecret(f), newCmdKey(f), newCmdStore(f),
	}
}
