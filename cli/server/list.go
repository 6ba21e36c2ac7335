package server

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

type listOptions struct {
	f       *cmdutil.Factory
	names   []string
	tags    []string
	resolve bool
	long    bool
	json    bool
	ok      bool
}

func newCmdList(f *cmdutil.Factory, runF func(context.Context, *listOptions) error) *cobra.Command {
	o := &listOptions{f: f}
	if runF == nil {
		runF = listRun
	}
	c := &cobra.Command{
		Use: "list [NAME…]", Aliases: []string{"ls"}, Short: "Show the configured servers and where each comes from", GroupID: "config",
		Long: `Show every configured server: how it is reached, which file it comes from, and
whether it can be used. Definitions are shown as written: placeholders stay
placeholders, and literal credentials are masked.

States: ok, disabled, held (a project file's definition that waits for usher
approve), broken (with the reason). Broken files and entries make the exit code
1; --ok leaves them out.`,
		Example: `  usher list
  usher list --long docs        every field of one server
  usher list --resolve          with placeholders filled in: shows secrets
  usher list --json | jq '.servers[].name'`,
		Args:              cmdutil.RangeArgs(0, -1),
		ValidArgsFunction: cmdutil.CompleteServers(f, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.names = args
			return runF(c.Context(), o)
		},
	}
	cmdutil.TagFlag(f, c, &o.tags)
	c.Flags().BoolVar(&o.resolve, "resolve", false, "fill in placeholders and show all values, credentials too")
	c.Flags().BoolVarP(&o.long, "long", "l", false, "show every field")
	c.Flags().BoolVar(&o.ok, "ok", false, "leave out what is broken")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func listRun(ctx context.Context, o *listOptions) error {
	f := o.f
	cfg, err := config.Load(f.LoadOptions())
	if err != nil && len(cfg.Files) == 0 {
		return err
	}
	if err := cmdutil.KnownServers(cfg, o.names); err != nil {
		return err
	}
	if len(o.tags) > 0 {
		if len(o.names) > 0 {
			return cmdutil.Usagef("usher list NAME…, or usher list --tag TAG", "names and --tag exclude each other")
		}
		if o.names = cfg.Tagged(o.tags...); len(o.names) == 0 {
			_, err := cmdutil.Tagged(cfg, o.tags, cmdutil.AnyServer)
			return err
		}
	}
	if !o.json {
		f.Warn(cfg)
	}
	rows := listRows(ctx, f, cfg, o)
	broken := brokenThings(cfg, rows, o.names)
	if o.ok {
		rows = slices.DeleteFunc(rows, func(r cmdutil.ServerState) bool { return r.State == cmdutil.StateBroken })
	}
	if o.resolve {
		f.Note("these values are what the servers get: they may hold passwords and tokens")
		f.Note("do not paste them anywhere; usher list without --resolve is safe to share")
	}
	if o.json {
		err = listJSON(f, cfg, rows)
	} else {
		listText(f, cfg, rows, broken, o)
	}
	if err == nil && len(broken) > 0 && !o.ok {
		return &cmdutil.SilentError{Code: cmdutil.ExitError}
	}
	return err
}
