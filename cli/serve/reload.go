package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

// steerOptions are those of commands that steer running instances.
type steerOptions struct {
	f         *cmdutil.Factory
	operation string // reload or stop
	done      string // the same in the past tense
	server    string
	files     bool // no server was named
	pid       int
}

func newCmdReload(f *cmdutil.Factory, runF func(context.Context, *steerOptions) error) *cobra.Command {
	if runF == nil {
		runF = reloadRun
	}
	c := newCmdSteer(f, runF, steerOptions{operation: "reload", done: "reloaded"})
	c.Use, c.Args = "reload [NAME]", cmdutil.RangeArgs(0, 1)
	c.Short = "Reconnect a server, or reload the configuration"
	c.Long = `Reconnect a server in every running usher process, and reset its failures, its
ejection and its cache. In-flight calls finish; the next call connects. Use this to
bring back a server that was ejected.

Without a NAME, running usher processes reload their configuration files. They also do
so on their own shortly after a file changes. Only servers whose definition changed
are reconnected.`
	c.Example = `  usher reload                     reload the configuration
  usher reload github
  usher reload github --pid 4711   only in that process`
	return c
}

// reloadRun has running instances connect to a server again, or read their files when none
// is named.
func reloadRun(ctx context.Context, o *steerOptions) error {
	if o.files {
		return reread(ctx, o.f, o.pid)
	}
	return steerRun(ctx, o)
}

// reread has running instances read their files again.
func reread(ctx context.Context, f *cmdutil.Factory, pid int) error {
	peers, err := cmdutil.Running(ctx, f, pid)
	if err != nil {
		return err
	}
	if len(peers) == 0 {
		f.Note("no usher process is running, so there is nothing to reload")
		return nil
	}
	var failed []error
	for _, p := range peers {
		got, err := cmdutil.AskReread(ctx, p)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, n := range got.Notes {
			f.Note("pid %d: %s", p.PID, n)
		}
		changed := "nothing has changed"
		if len(got.Changed) > 0 {
			changed = strings.Join(got.Changed, ", ")
		}
		f.Note("pid %d has read its files again: %s", p.PID, changed)
	}
	return errors.Join(failed...)
}

func newCmdSteer(f *cmdutil.Factory, runF func(context.Context, *steerOptions) error, o steerOptions) *cobra.Command {
	o.f = f
	if runF == nil {
		runF = steerRun
	}
	c := &cobra.Command{
		Use: o.operation + " NAME", GroupID: "run", Args: cmdutil.ExactArgs(1),
		Example: fmt.Sprintf(`  usher %s github
  usher %[1]s github --pid 4711    only in that process`, o.operation),
		ValidArgsFunction: cmdutil.CompleteServers(f, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if o.files = len(args) == 0; !o.files {
				o.server = args[0]
			}
			return runF(c.Context(), &o)
		},
	}
	c.Flags().IntVar(&o.pid, "pid", 0, "only the usher process with this `id`")
	return c
}

func steerRun(ctx context.Context, o *steerOptions) error {
	f := o.f
	peers, err := cmdutil.Running(ctx, f, o.pid)
	if err != nil {
		return err
	}
	got := cmdutil.Steer(ctx, peers, o.operation, o.server)
	if got.Reached == 0 && len(got.Failed) == 0 {
		return nobodyHosts(f, o, got)
	}
	if got.Reached > 0 {
		f.Note("%s %s in %s", o.done, o.server, cmdutil.CountOf(got.Reached, "usher process", "usher processes"))
	}
	return errors.Join(got.Failed...)
}

// nobodyHosts says why nothing was done: that is no failure as long as the server
// exists.
func nobodyHosts(f *cmdutil.Factory, o *steerOptions, got cmdutil.SteerOutcome) error {
	cfg, err := f.Config()
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(o.server, "@")
	if _, ok := cfg.Server(name); !ok {
		return cmdutil.NoServer(cfg, name)
	}
	if got.Asked == 0 {
		f.Note("no usher process is running, so there is nothing to %s", o.operation)
		return nil
	}
	f.Note("no usher process runs %s, so there is nothing to %s", config.Unquoted(o.server), o.operation)
	return nil
}
