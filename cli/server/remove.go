package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/edit"
)

type removeOptions struct {
	f             *cmdutil.Factory
	name          string
	project, user bool
	rehearse      bool
}

func newCmdRemove(f *cmdutil.Factory, runF func(context.Context, *removeOptions) error) *cobra.Command {
	o := &removeOptions{f: f}
	if runF == nil {
		runF = removeRun
	}
	c := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove a server from your configuration", GroupID: "config",
		Long: `Remove a server from the file that defines it. The rest of the file stays as it is,
comments and layout included.`,
		Example: `  usher remove docs
  usher remove docs --project     only from the project's file
  usher remove docs --dry-run`,
		Args:              cmdutil.ExactArgs(1),
		ValidArgsFunction: cmdutil.CompleteServers(f, 1),
		RunE: func(c *cobra.Command, args []string) error {
			o.name = args[0]
			return runF(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.project, "project", false, "remove it from the project's file")
	c.Flags().BoolVar(&o.user, "user", false, "remove it from your own file")
	c.Flags().BoolVar(&o.rehearse, "dry-run", false, "show what would be removed, and remove nothing")
	return c
}

func removeRun(_ context.Context, o *removeOptions) error {
	f := o.f
	if o.project && o.user {
		return cmdutil.Usagef("leave one of them out", "--project and --user name two files")
	}
	places, err := definitions(f, o.name)
	if err != nil {
		return err
	}
	found, err := choose(f, places, o)
	if err != nil {
		return err
	}
	change := func(d *edit.Document) error { return d.Remove(o.name) }
	if o.rehearse {
		if err := cmdutil.Rehearse(found.file.Path, change); err != nil {
			return err
		}
		fmt.Fprintf(f.IO.Out, "would remove %s from %s:\n%q: %s\n", cmdutil.Clean(o.name), cmdutil.Clean(f.Short(found.file.Path)), o.name, cmdutil.MaskedEntry(found.server))
		return nil
	}
	if _, err := edit.Update(found.file.Path, change); err != nil {
		return err
	}
	f.Note("removed %s from your %s, %s", o.name, found.file.Word(), cmdutil.Clean(f.Short(found.file.Path)))
	for _, p := range places {
		if p.file != found.file {
			f.Note("  the one in %s is used now", cmdutil.Clean(f.Short(p.file.Path)))
		}
	}
	return nil
}

// definition is one of the places where a name is defined.
type definition struct {
	file   cmdutil.Target
	server config.Server
}

// definitions finds a server in every file that applies; later files win. A file
// that cannot be read cannot be changed either and ends it, unless the name was
// found elsewhere.
func definitions(f *cmdutil.Factory, name string) ([]definition, error) {
	cfg, err := config.Load(f.LoadOptions())
	if err != nil {
		return nil, err
	}
	var out []definition
	var broken error
	for _, file := range cfg.Files {
		t := cmdutil.Target{Path: file.Path, Layer: file.Layer}
		if file.Err != nil {
			broken = file.Err
			continue
		}
		alone, err := cmdutil.ReadTarget(f, t)
		if err != nil {
			return nil, err
		}
		if s, ok := alone.Server(name); ok {
			out = append(out, definition{t, s})
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case broken != nil:
		return nil, broken
	}
	return nil, cmdutil.NoServer(cfg, name)
}

func choose(f *cmdutil.Factory, places []definition, o *removeOptions) (definition, error) {
	want := map[config.Layer]bool{config.LayerUser: !o.project, config.LayerProject: !o.user, config.LayerFlag: !o.project && !o.user}
	var fit []definition
	for _, p := range places {
		if want[p.file.Layer] {
			fit = append(fit, p)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) == 0:
		return definition{}, cmdutil.WithHint(fmt.Errorf("%s is not in that file; it is in %s", o.name, f.Short(places[0].file.Path)), "usher remove %s", o.name)
	case o.project || o.user:
		return fit[len(fit)-1], nil
	}
	return definition{}, cmdutil.WithHint(errors.New(o.name+" is defined in two files; say which one is meant"),
		"usher remove %s --project   %s\nusher remove %s --user      %s", o.name, f.Short(fit[len(fit)-1].file.Path), o.name, f.Short(fit[0].file.Path))
}
