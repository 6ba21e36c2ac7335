package cli

import (
	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

// newCmdTorture says where the command of that name went.
func newCmdTorture() *cobra.Command {
	return &cobra.Command{
		Use: "torture", Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return cmdutil.Usagef("usher-torture --help", "usher torture is a program of its own, usher-torture")
		},
	}
}
