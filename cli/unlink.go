package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newCmdUnlink(a *factory) *cobra.Command {
	var o linkOptions
	c := &cobra.Command{
		Use: "unlink CLIENT…|--all", Short: "Undo usher link", GroupID: "config",
		Long: `Take usher out of the files of the clients. A file that nobody has touched since
usher link becomes what it was, byte for byte, or is deleted if it was not there. Of
any other only the entry is taken out, and servers that had moved into usher come
back; the rest of the file stays as it is, comments and layout included.`,
		Example: `  usher unlink cursor
  usher unlink --all --yes
  usher unlink --all --dry-run`,
		Args:              between(0, -1),
		ValidArgsFunction: completeClients,
		RunE: func(c *cobra.Command, args []string) error {
			o.clients = args
			if len(args) == 0 && !o.all {
				return usagef("usher unlink CLIENT…, or usher unlink --all", "usher unlink needs the name of a client")
			}
			return a.unlinkRun(c.Context(), o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.all, "all", false, "unlink every client")
	f.BoolVarP(&o.yes, "yes", "y", false, "write without being asked")
	f.BoolVar(&o.rehearse, "dry-run", false, "show what would happen, and change nothing")
	f.BoolVar(&o.json, "json", false, "print it as JSON; writes only with --yes")
	return c
}

func (a *factory) unlinkRun(ctx context.Context, o linkOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	w, err := a.planUnlinks(o)
	if err != nil {
		return err
	}
	if o.json {
		return a.linkQuietly(w, o.yes)
	}
	a.showLinks(w)
	if len(w.changes) == 0 && len(w.failed) == 0 {
		a.note("nothing to undo: usher is in none of their files")
		return nil
	}
	if o.rehearse {
		return a.reportEach(w.failed)
	}
	if !o.yes && w.writes() {
		agreed, err := a.confirm(ctx, fmt.Sprintf("write %s?", count(w.files(), "file")))
		if err != nil {
			return withHint(err, "%s", a.agreeHint("look at what is shown, then: usher unlink %s --yes", strings.Join(o.words(), " ")))
		}
		if !agreed {
			a.note("nothing was written")
			return nil
		}
	}
	return a.applyLinks(w)
}

func (a *factory) planUnlinks(o linkOptions) (*linking, error) {
	l, err := a.links()
	if err != nil {
		return nil, err
	}
	names := o.clients
	if o.all {
		names = clientNames()
	}
	w := &linking{undo: true}
	for _, name := range names {
		list, err := l.Unlink(name)
		if err != nil {
			w.failed = append(w.failed, fmt.Errorf("unlink %s: %w", name, err))
			continue
		}
		w.changes = append(w.changes, list...)
	}
	return w, nil
}
