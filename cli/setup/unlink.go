package setup

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

func newCmdUnlink(f *cmdutil.Factory, runF func(context.Context, *linkOptions) error) *cobra.Command {
	o := &linkOptions{f: f}
	if runF == nil {
		runF = unlinkRun
	}
	c := &cobra.Command{
		Use: "unlink CLIENT…|--all", Short: "Undo usher link", GroupID: "config",
		Long: `Take usher out of the files of the clients. A file that nobody has touched since
usher link becomes what it was, byte for byte, or is deleted if it was not there. Of
any other only the entry is taken out, and servers that had moved into usher come
back; the rest of the file stays as it is, comments and layout included.`,
		Example: `  usher unlink cursor
  usher unlink --all --yes
  usher unlink --all --dry-run`,
		Args:              cmdutil.RangeArgs(0, -1),
		ValidArgsFunction: completeClients,
		RunE: func(c *cobra.Command, args []string) error {
			o.clients = args
			if len(args) == 0 && !o.all {
				return cmdutil.Usagef("usher unlink CLIENT…, or usher unlink --all", "usher unlink needs the name of a client")
			}
			return runF(c.Context(), o)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&o.all, "all", false, "unlink every client")
	flags.BoolVarP(&o.yes, "yes", "y", false, "write without being asked")
	flags.BoolVar(&o.rehearse, "dry-run", false, "show what would happen, and change nothing")
	flags.BoolVar(&o.json, "json", false, "print it as JSON; writes only with --yes")
	return c
}

func unlinkRun(ctx context.Context, o *linkOptions) error {
	f := o.f
	if err := o.check(); err != nil {
		return err
	}
	w, err := planUnlinks(f, o)
	if err != nil {
		return err
	}
	if o.json {
		return linkQuietly(f, w, o.yes)
	}
	showLinks(f, w)
	if len(w.changes) == 0 && len(w.failed) == 0 {
		f.Note("nothing to undo: usher is in none of their files")
		return nil
	}
	if o.rehearse {
		return reportEach(f, w.failed)
	}
	if !o.yes && w.writes() {
		agreed, err := f.Confirm(ctx, fmt.Sprintf("write %s?", cmdutil.Count(w.files(), "file")))
		if err != nil {
			return cmdutil.WithHint(err, "%s", cmdutil.AgreeHint(f, "look at what is shown, then: usher unlink %s --yes", strings.Join(o.words(), " ")))
		}
		if !agreed {
			f.Note("nothing was written")
			return nil
		}
	}
	return applyLinks(f, w)
}

func planUnlinks(f *cmdutil.Factory, o *linkOptions) (*linking, error) {
	l, err := links(f)
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
