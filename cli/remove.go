package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/edit"
)

type removeOptions struct {
	name          string
	project, user bool
	rehearse      bool
}

func newCmdRemove(a *factory) *cobra.Command {
	var o removeOptions
	c := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove a server from your configuration", GroupID: "config",
		Long: `Remove a server from the file it stands in. The rest of the file stays as it is,
comments and layout included.`,
		Example: `  usher remove docs
  usher remove docs --project     only from the project's file
  usher remove docs --dry-run`,
		Args:              exactly(1),
		ValidArgsFunction: a.completeServers(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.name = args[0]
			return a.removeRun(o)
		},
	}
	c.Flags().BoolVar(&o.project, "project", false, "remove it from the project's file")
	c.Flags().BoolVar(&o.user, "user", false, "remove it from your own file")
	c.Flags().BoolVar(&o.rehearse, "dry-run", false, "show what would be removed, and remove nothing")
	return c
}

func (a *factory) removeRun(o removeOptions) error {
	if o.project && o.user {
		return usagef("leave one of them out", "--project and --user name two files")
	}
	places, err := a.definitions(o.name)
	if err != nil {
		return err
	}
	found, err := a.choose(places, o)
	if err != nil {
		return err
	}
	change := func(d *edit.Document) error { return d.Remove(o.name) }
	if o.rehearse {
		if err := rehearse(found.file.path, change); err != nil {
			return err
		}
		fmt.Fprintf(a.io.Out, "would remove %s from %s:\n%q: %s\n", clean(o.name), clean(a.short(found.file.path)), o.name, maskedEntry(found.server))
		return nil
	}
	if _, err := edit.Update(found.file.path, change); err != nil {
		return err
	}
	a.note("removed %s from your %s, %s", o.name, found.file.word(), clean(a.short(found.file.path)))
	for _, p := range places {
		if p.file != found.file {
			a.note("  the one in %s is used now", clean(a.short(p.file.path)))
		}
	}
	return nil
}

// definition is one of the places where a name is defined.
type definition struct {
	file   target
	server config.Server
}

// definitions finds a server in every file that applies; later files win. A file
// that cannot be read cannot be changed either and ends it, unless the name was
// found elsewhere.
func (a *factory) definitions(name string) ([]definition, error) {
	cfg, err := config.Load(a.loadOptions())
	if err != nil {
		return nil, err
	}
	var out []definition
	var broken error
	for _, f := range cfg.Files {
		t := target{f.Path, f.Layer}
		if f.Err != nil {
			broken = f.Err
			continue
		}
		alone, err := a.current(t)
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
	return nil, noServer(cfg, name)
}

func (a *factory) choose(places []definition, o removeOptions) (definition, error) {
	want := map[config.Layer]bool{config.LayerUser: !o.project, config.LayerProject: !o.user, config.LayerFlag: !o.project && !o.user}
	var fit []definition
	for _, p := range places {
		if want[p.file.layer] {
			fit = append(fit, p)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) == 0:
		return definition{}, withHint(fmt.Errorf("%s is not in that file; it stands in %s", o.name, a.short(places[0].file.path)), "usher remove %s", o.name)
	case o.project || o.user:
		return fit[len(fit)-1], nil
	}
	return definition{}, withHint(errors.New(o.name+" is defined in two files; say which one is meant"),
		"usher remove %s --project   %s\nusher remove %s --user      %s", o.name, a.short(fit[len(fit)-1].file.path), o.name, a.short(fit[0].file.path))
}
