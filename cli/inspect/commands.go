package inspect

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// Commands returns the commands of this package.
func Commands(f *cmdutil.Factory) []*cobra.Command {
	return []*cobra.Command{
		newCmdSurface(f), newCmdStatus(f, nil), newCmdDoctor(f, nil), newCmdAudit(f), newCmdPins(f, nil),
	}
}
