package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
)

type listOptions struct {
	names   []string
	tags    []string
	resolve bool
	long    bool
	json    bool
	ok      bool
}

func newCmdList(a *factory) *cobra.Command {
	var o listOptions
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
		Args:              between(0, -1),
		ValidArgsFunction: a.completeServers(-1),
		RunE: func(c *cobra.Command, args []string) error {
			o.names = args
			return a.listRun(c.Context(), o)
		},
	}
	a.tagFlag(c, &o.tags)
	c.Flags().BoolVar(&o.resolve, "resolve", false, "fill in placeholders and show all values, credentials too")
	c.Flags().BoolVarP(&o.long, "long", "l", false, "show every field")
	c.Flags().BoolVar(&o.ok, "ok", false, "leave out what is broken")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func (a *factory) listRun(ctx context.Context, o listOptions) error {
	cfg, err := config.Load(a.loadOptions())
	if err != nil && len(cfg.Files) == 0 {
		return err
	}
	if err := known(cfg, o.names); err != nil {
		return err
	}
	if len(o.tags) > 0 {
		if len(o.names) > 0 {
			return usagef("usher list NAME…, or usher list --tag TAG", "names and --tag exclude each other")
		}
		if o.names = cfg.Tagged(o.tags...); len(o.names) == 0 {
			_, err := tagged(cfg, o.tags, anyServer)
			return err
		}
	}
	if !o.json {
		a.warn(cfg)
	}
	rows := a.listRows(ctx, cfg, o)
	broken := brokenThings(cfg, rows, o.names)
	if o.ok {
		rows = slices.DeleteFunc(rows, func(r listRow) bool { return r.state == stateBroken })
	}
	if o.resolve {
		a.note("these values are what the servers get: they may hold passwords and tokens")
		a.note("do not paste them anywhere; usher list without --resolve is safe to share")
	}
	if o.json {
		err = a.listJSON(cfg, rows)
	} else {
		a.listText(cfg, rows, broken, o)
	}
	if err == nil && len(broken) > 0 && !o.ok {
		return &silent{exitError}
	}
	return err
}

// known refuses names that no server has.
func known(cfg *config.Config, names []string) error {
	for _, name := range names {
		if _, ok := cfg.Server(name); !ok {
			return noServer(cfg, name)
		}
	}
	return nil
}

// noServer says that a server is not configured, and which may have been meant.
func noServer(cfg *config.Config, name string) error {
	err := fmt.Errorf("no server named %s is configured%s", config.Visible(name), didYouMean(cfg.Nearest(name)))
	if len(cfg.Servers) == 0 {
		return withHint(err, "usher import\nusher add NAME URL")
	}
	return withHint(err, "usher list")
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = config.Visible(n)
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}

// warn tells what was ignored.
func (a *factory) warn(cfg *config.Config) {
	for _, w := range cfg.Warnings {
		w.File = a.short(w.File)
		a.note("%s", clean("warning: "+w.String()))
	}
}
