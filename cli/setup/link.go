package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients"
)

type linkOptions struct {
	f                   *cmdutil.Factory
	clients             []string
	all                 bool
	name, file          string
	http, tokenEnv      string
	profile             string
	replace             bool
	yes, rehearse, json bool
}

func newCmdLink(f *cmdutil.Factory, runF func(context.Context, *linkOptions) error) *cobra.Command {
	o := &linkOptions{f: f}
	if runF == nil {
		runF = linkRun
	}
	c := &cobra.Command{
		Use: "link [CLIENT…]", Short: "Point your agents at usher", GroupID: "config",
		Long: `Write one entry into the own file of each CLIENT, so that it starts "usher serve"
(or, with --http, reaches a running one). The entry is shown before anything is
written; comments and layout of the file stay as they are, and the file as it was is
kept: usher unlink gives it back byte for byte.

Without a CLIENT the clients on this machine are listed. Linking is
idempotent.

With --replace the client's own servers move into usher: they are imported first,
and removed from the client's file, so that its agent does not see them twice.
usher unlink puts them back.

Clients: ` + strings.Join(clientNames(), ", ") + `.`,
		Example: `  usher link                          which clients are here?
  usher link cursor claude-code
  usher link --all --yes
  usher link cursor --replace         its own servers move into usher
  usher link zed --http http://127.0.0.1:7331/mcp
  usher link vscode --profile work --name usher-work --file .vscode/mcp.json`,
		Args:              cmdutil.RangeArgs(0, -1),
		ValidArgsFunction: completeClients,
		RunE: func(c *cobra.Command, args []string) error {
			o.clients = args
			return runF(c.Context(), o)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&o.all, "all", false, "link every client that is found on this machine")
	flags.StringVar(&o.name, "name", "", "name of the entry (default usher)")
	flags.StringVar(&o.file, "file", "", "write this `file` of the client, such as a project's")
	flags.StringVar(&o.http, "http", "", "connect to a running gateway at this `URL` instead of starting one")
	flags.StringVar(&o.tokenEnv, "token-env", "", "with --http: the `variable` of the client's environment that holds its token")
	flags.StringVar(&o.profile, "profile", "", "show it this `profile` instead of all servers")
	flags.BoolVar(&o.replace, "replace", false, "move the client's own servers into usher")
	flags.BoolVarP(&o.yes, "yes", "y", false, "write without being asked")
	flags.BoolVar(&o.rehearse, "dry-run", false, "show what would be written, and write nothing")
	flags.BoolVar(&o.json, "json", false, "print it as JSON; writes only with --yes")
	return c
}

func completeClients(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names := slices.DeleteFunc(clientNames(), func(n string) bool { return slices.Contains(args, n) })
	return cmdutil.Offer(names, prefix), cobra.ShellCompDirectiveNoFileComp
}

// links is where other clients' files are, and where what they were is kept.
func links(f *cmdutil.Factory) (clients.Links, error) {
	dirs, err := config.FindDirs(f.IO.System)
	if err != nil {
		return clients.Links{}, err
	}
	return clients.Links{Dir: filepath.Join(dirs.State, "links"), System: f.IO.System}, nil
}

// check refuses what contradicts itself.
func (o *linkOptions) check() error {
	switch {
	case o.yes && o.rehearse:
		return cmdutil.Usagef("leave one of them out", "--yes writes and --dry-run does not")
	case o.all && len(o.clients) > 0:
		return cmdutil.Usagef("leave one of them out", "--all means every client that is found, and %s is one of them", o.clients[0])
	case o.file != "" && len(o.clients) != 1:
		return cmdutil.Usagef("usher link CLIENT --file FILE", "--file is the file of one client")
	case o.tokenEnv != "" && o.http == "":
		return cmdutil.Usagef("usher link CLIENT --http URL --token-env VARIABLE", "--token-env goes with --http; a started usher needs no token")
	case o.http != "" && !strings.HasPrefix(o.http, "http://") && !strings.HasPrefix(o.http, "https://"):
		return cmdutil.Usagef("--http http://127.0.0.1:7331/mcp", "%s is not an HTTP URL", config.Visible(o.http))
	}
	return knownClients(o.clients)
}

func knownClients(names []string) error {
	for _, name := range names {
		if !slices.Contains(clientNames(), name) {
			return cmdutil.Usagef("known are "+strings.Join(clientNames(), ", "), "there is no client %s", config.Visible(name))
		}
	}
	return nil
}

func linkRun(ctx context.Context, o *linkOptions) error {
	f := o.f
	if err := o.check(); err != nil {
		return err
	}
	l, err := links(f)
	if err != nil {
		return err
	}
	if len(o.clients) == 0 && !o.all {
		return linkList(f, l, o.json)
	}
	w, err := planLinks(f, l, o)
	if err != nil {
		return err
	}
	if o.json {
		return linkQuietly(f, w, o.yes)
	}
	showLinks(f, w)
	if o.rehearse || !w.writes() {
		return reportEach(f, w.failed)
	}
	if !o.yes {
		agreed, err := f.Confirm(ctx, fmt.Sprintf("write %s?", cmdutil.Count(w.files(), "file")))
		if err != nil {
			return cmdutil.WithHint(err, "%s", cmdutil.AgreeHint(f, "look at what is shown, then: usher link %s --yes", strings.Join(o.words(), " ")))
		}
		if !agreed {
			f.Note("nothing was written")
			return nil
		}
	}
	return applyLinks(f, w)
}

// words are the clients as they were named.
func (o *linkOptions) words() []string {
	if o.all {
		return []string{"--all"}
	}
	return o.clients
}

// linking is what would be done to the clients that were named.
type linking struct {
	imports *clients.Plan // with --replace; else nil
	changes []*clients.Change
	failed  []error
	undo    bool
	step    bool // more follows, so that what comes next is told later
}

func (w *linking) writes() bool { return w.files() > 0 }

func (w *linking) files() int {
	n := 0
	for _, ch := range w.changes {
		if ch.Writes() {
			n++
		}
	}
	if w.imports != nil && len(w.imports.Add) > 0 {
		n++
	}
	return n
}

// planLinks decides what happens to each client. One that cannot be linked does not
// keep the others from it.
func planLinks(f *cmdutil.Factory, l clients.Links, o *linkOptions) (*linking, error) {
	server, err := linkedServer(f, o)
	if err != nil {
		return nil, err
	}
	survey, err := l.Survey(o.clients...)
	if err != nil {
		return nil, err
	}
	if o.all {
		survey = slices.DeleteFunc(survey, func(p clients.Presence) bool { return !p.Found })
		if len(survey) == 0 {
			return nil, cmdutil.WithHint(errors.New("no client was found on this machine"), "name one: usher link %s", strings.Join(clientNames(), "|"))
		}
	}
	w := &linking{}
	var ours []config.Server
	if o.replace {
		if ours, err = planMoves(f, w, survey, o); err != nil {
			return nil, err
		}
	}
	for _, p := range survey {
		want := clients.Wanted{Name: o.entryName(p), Server: server, File: o.file}
		if o.file != "" {
			want.File = absolute(f, o.file)
		} else if o.replace {
			want.Move = moves(f, p, ours)
		}
		ch, err := l.Link(p.Client, want)
		if err != nil {
			w.failed = append(w.failed, cmdutil.WithHint(fmt.Errorf("link %s: %w", p.Client, err), "usher export %s prints what such a file looks like; or leave this client out", p.Client))
			continue
		}
		w.changes = append(w.changes, ch)
	}
	return w, nil
}

// entryName is the one that was asked for, the one that an entry of ours has, or
// usher.
func (o *linkOptions) entryName(p clients.Presence) string {
	if o.name != "" {
		return o.name
	}
	for _, at := range p.Linked {
		if at.File == p.File && o.file == "" {
			return at.Name
		}
	}
	return "usher"
}

func absolute(f *cmdutil.Factory, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.IO.System.WithDefaults().Workdir, path)
}
