package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
)

// steerOptions are those of commands that steer running ushers.
type steerOptions struct {
	operation string // reload or stop
	done      string // the same in the past tense
	server    string
	pid       int
}

func newCmdReload(a *app) *cobra.Command {
	c := newCmdSteer(a, steerOptions{operation: "reload", done: "reloaded"})
	c.Short = "Let running ushers connect to a server anew"
	c.Long = `Drop the connections of a server in every running usher, and forget its failures,
its ejection and what was cached. Calls under way finish; the next one connects.
This is the way back for a server that was ejected.`
	return c
}

func newCmdSteer(a *app, o steerOptions) *cobra.Command {
	c := &cobra.Command{
		Use: o.operation + " NAME", GroupID: "run", Args: exactly(1),
		Example: fmt.Sprintf(`  usher %s github
  usher %[1]s github --pid 4711    only in that usher`, o.operation),
		ValidArgsFunction: a.completeServers(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.server = args[0]
			return a.steerRun(c.Context(), o)
		},
	}
	c.Flags().IntVar(&o.pid, "pid", 0, "only the usher with this process `id`")
	return c
}

func (a *app) steerRun(ctx context.Context, o steerOptions) error {
	peers, err := a.running(ctx, o.pid)
	if err != nil {
		return err
	}
	got := steer(ctx, peers, o.operation, o.server)
	if got.reached == 0 && len(got.failed) == 0 {
		return a.nobodyHosts(o, got)
	}
	if got.reached > 0 {
		a.note("%s %s in %s", o.done, o.server, countOf(got.reached, "running usher", "running ushers"))
	}
	return errors.Join(got.failed...)
}

// nobodyHosts says why nothing was done: that is no failure as long as the server
// exists.
func (a *app) nobodyHosts(o steerOptions, got steered) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(o.server, "@")
	if _, ok := cfg.Server(name); !ok {
		return noServer(cfg, name)
	}
	if got.asked == 0 {
		a.note("no usher is running, so there is nothing to %s", o.operation)
		return nil
	}
	a.note("no running usher hosts %s, so there is nothing to %s", config.Unquoted(o.server), o.operation)
	return nil
}

// countOf is "1 thing" or "2 things".
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
