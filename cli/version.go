package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

func newCmdVersion(f *cmdutil.Factory) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version", GroupID: "config", Args: cmdutil.ExactArgs(0),
		Example: "  usher version\n  usher version --json",
		RunE: func(*cobra.Command, []string) error {
			b := cmdutil.Version()
			if asJSON {
				return f.PrintJSON(b)
			}
			fmt.Fprintln(f.IO.Out, b)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
