package serve

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/app"
)

// newCmdHold is for tests and for looking around: a host that only runs.
func newCmdHold(f *cmdutil.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "hold [NAME…]", Short: "Open the host and connect servers until a signal comes", Hidden: true, Args: cmdutil.RangeArgs(0, -1),
		ValidArgsFunction: cmdutil.CompleteServers(f, -1),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := f.Open(c.Context())
			if err != nil {
				return err
			}
			return whileSteered(f, h, func() error { return holdRun(c.Context(), f, h, args) })
		},
	}
}

// whileSteered lets the usher command see and steer h while run runs. A socket that
// cannot be made is told; it is no reason not to serve.
func whileSteered(f *cmdutil.Factory, h *app.App, run func() error) error {
	socket, err := h.ServeControl()
	if err != nil {
		f.Note("usher status, reload, stop and logs cannot reach this usher: %v", err)
		return run()
	}
	defer func() { _ = socket.Close() }() // nothing can be done about it at the end
	return run()
}

// holdRun connects servers and waits for the end of ctx.
func holdRun(ctx context.Context, f *cmdutil.Factory, h *app.App, names []string) error {
	for _, name := range names {
		if _, err := h.Tools(ctx, name); err != nil {
			f.Note("%s: %v", name, err)
		}
	}
	<-ctx.Done()
	return nil
}
