package serve

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

func newCmdStop(f *cmdutil.Factory, runF func(context.Context, *steerOptions) error) *cobra.Command {
	c := newCmdSteer(f, runF, steerOptions{operation: "stop", done: "stopped"})
	c.Short = "Disconnect a server"
	c.Long = `Close the connections of a server in every running usher process now: its processes
stop, and in-flight calls fail. It stays configured, and the next call starts it
again; to keep it off, set "disabled" or run usher deny NAME.`
	return c
}
