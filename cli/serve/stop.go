package serve

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

func newCmdStop(f *cmdutil.Factory, runF func(context.Context, *steerOptions) error) *cobra.Command {
	c := newCmdSteer(f, runF, steerOptions{operation: "stop", done: "stopped"})
	c.Short = "End a server in running ushers now"
	c.Long = `End the connections of a server in every running usher now: its processes are
stopped, and calls under way fail. It stays configured, and the next call starts
it again; to keep it off, set "disabled" or usher deny NAME.`
	return c
}
