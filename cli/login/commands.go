package login

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// Commands returns the commands of this package.
func Commands(f *cmdutil.Factory) []*cobra.Command {
	return []*cobra.Command{
		newCmdLogin(f, nil), newCmdLogout(f, nil), newCmdAuth(f, nil),
	}
}
