package setup

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// Commands returns the commands of this package.
func Commands(f *cmdutil.Factory) []*cobra.Command {
	return []*cobra.Command{
		newCmdInit(f, nil), newCmdImport(f, nil), newCmdExport(f, nil), newCmdLink(f, nil), newCmdUnlink(f, nil),
	}
}
