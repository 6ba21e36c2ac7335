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

func newCmdReload(a *factory) *cobra.Command {
	c := newCmdSteer(a, steerOptions{operation: "reload", done: "reloaded"})
	steer := c.RunE
	c.Use, c.Args = "reload [NAME]", between(0, 1)
	c.Short = "Let running ushers connect to a server anew, or read their files again"
	c.Long = `Drop the connections of a server in every running usher, and forget its failures,
its ejection and what was cached. Calls under way finish; the next one connects.
This is the way back for a server that was ejected.

Without a NAME running ushers read their configuration files again. They also do so
by themselves a moment after a file has changed. Only servers whose definition has
changed are connected anew.`
	c.Example = `  usher reload                     read the configuration again
  usher reload github
  usher reload github --pid 4711   only in that usher`
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return steer(c, args)
		}
		pid, err := c.Flags().GetInt("pid")
		if err != nil {
			return err
		}
		return a.rereadRun(c.Context(), pid)
	}
	return c
}

// rereadRun has running ushers read their files again.
func (a *factory) rereadRun(ctx context.Context, pid int) error {
	peers, err := a.running(ctx, pid)
	if err != nil {
		return err
	}
	if len(peers) == 0 {
		a.note("no usher is running, so there is nothing to reload")
		return nil
	}
	var failed []error
	for _, p := range peers {
		got, err := askReread(ctx, p)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, n := range got.Notes {
			a.note("pid %d: %s", p.PID, n)
		}
		changed := "nothing has changed"
		if len(got.Changed) > 0 {
			changed = strings.Join(got.Changed, ", ")
		}
		a.note("pid %d has read its files again: %s", p.PID, changed)
	}
	return errors.Join(failed...)
}

func newCmdSteer(a *factory, o steerOptions) *cobra.Command {
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

func (a *factory) steerRun(ctx context.Context, o steerOptions) error {
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
func (a *factory) nobodyHosts(o steerOptions, got steered) error {
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
