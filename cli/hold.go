package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/internal/app"
)

// newCmdHold is for tests and for looking around: a host that only runs.
func newCmdHold(a *factory) *cobra.Command {
	return &cobra.Command{
		Use: "hold [NAME…]", Short: "Open the host and connect servers until a signal comes", Hidden: true, Args: between(0, -1),
		ValidArgsFunction: a.completeServers(-1),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := a.open(c.Context())
			if err != nil {
				return err
			}
			return a.whileSteered(h, func() error { return a.hold(c.Context(), h, args) })
		},
	}
}

// whileSteered lets the usher command see and steer h while run runs. A socket that
// cannot be made is told; it is no reason not to serve.
func (a *factory) whileSteered(h *app.App, run func() error) error {
	socket, err := h.Frontend().ServeControl()
	if err != nil {
		a.note("usher status, reload, stop and logs cannot reach this usher: %v", err)
		return run()
	}
	defer func() { _ = socket.Close() }() // nothing can be done about it at the end
	return run()
}

// hold connects servers and waits for the end of ctx.
func (a *factory) hold(ctx context.Context, h *app.App, names []string) error {
	for _, name := range names {
		if _, err := h.Tools(ctx, name); err != nil {
			a.note("%s: %v", name, err)
		}
	}
	<-ctx.Done()
	return nil
}
