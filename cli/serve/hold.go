package serve

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/app"
)

type holdOptions struct {
	f     *cmdutil.Factory
	names []string
}

// newCmdHold is for tests and for looking around: a host that only runs.
func newCmdHold(f *cmdutil.Factory, runF func(context.Context, *holdOptions) error) *cobra.Command {
	o := &holdOptions{f: f}
	if runF == nil {
		runF = holdRun
	}
	return &cobra.Command{
		Use: "hold [NAME…]", Short: "Open the host and connect servers until a signal comes", Hidden: true, Args: cmdutil.RangeArgs(0, -1),
		ValidArgsFunction: cmdutil.CompleteServers(f, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.names = args
			return runF(c.Context(), o)
		},
	}
}

// whileSteered lets the usher command see and steer h while run runs. A socket that
// cannot be made is told; it is no reason not to serve.
func whileSteered(f *cmdutil.Factory, h *app.App, run func() error) error {
	socket, err := h.Frontend().ServeControl()
	if err != nil {
		f.Note("usher status, reload, stop and logs cannot reach this usher: %v", err)
		return run()
	}
	defer func() { _ = socket.Close() }() // nothing can be done about it at the end
	return run()
}

// holdRun connects servers and waits for the end of ctx.
func holdRun(ctx context.Context, o *holdOptions) error {
	h, err := o.f.Open(ctx)
	if err != nil {
		return err
	}
	return whileSteered(o.f, h, func() error {
		for _, name := range o.names {
			if _, err := h.Tools(ctx, name); err != nil {
				o.f.Note("%s: %v", name, err)
			}
		}
		<-ctx.Done()
		return nil
	})
}
