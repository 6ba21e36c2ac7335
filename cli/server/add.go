package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/edit"
)

type addOptions struct {
	f       *cmdutil.Factory
	name    string
	words   []string // the address, or the command and its arguments
	command bool     // words came after --

	headers, env      []string
	transport, cwd    string
	tags              []string
	clientID          string
	scopes            []string
	allow, deny       []string
	timeout           time.Duration
	disabled          bool
	project           bool
	replace, rehearse bool
}

func newCmdAdd(f *cmdutil.Factory, runF func(context.Context, *addOptions) error) *cobra.Command {
	o := &addOptions{f: f}
	if runF == nil {
		runF = addRun
	}
	c := &cobra.Command{
		Use: "add NAME URL|-- COMMAND…", Short: "Add a server to your configuration", GroupID: "config",
		Long: `Add a server to your own file, or with --project to the project's .mcp.json. The
comments and the layout of the file stay as they are. Nothing is started.

Values may hold placeholders that are resolved when the server starts:
${env:NAME}, ${NAME:-default}, ${file:PATH}, ${secret:NAME}. Write them in single
quotes, or the shell fills them in. A project file never gets a literal
credential.`,
		Example: `  usher add docs https://example.com/mcp
  usher add docs https://example.com/mcp --header 'Authorization: Bearer ${env:DOCS_TOKEN}'
  usher add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  usher add db --env DATABASE_URL -- my-db-server --read-only
  usher add docs https://example.com/mcp --project --dry-run`,
		Args: cmdutil.RangeArgs(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.name, o.words, o.command = args[0], args[1:], c.ArgsLenAtDash() >= 0
			if c.ArgsLenAtDash() == 0 {
				return cmdutil.Usagef(c.UseLine(), "the name of the server goes before --")
			}
			if dash := c.ArgsLenAtDash(); dash > 1 {
				return cmdutil.Usagef(c.UseLine(), "give a URL or a command, not both: %s is before --", config.Visible(args[1]))
			}
			return runF(c.Context(), o)
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return cmdutil.Usagef("what belongs to a command goes after --: usher add NAME -- COMMAND ARGS…", "%v", err)
	})
	flags := c.Flags()
	flags.StringArrayVarP(&o.headers, "header", "H", nil, "send this `NAME:VALUE` with every request (may be repeated)")
	flags.StringArrayVarP(&o.env, "env", "e", nil, "set `NAME=VALUE` for the program; NAME alone passes yours on (may be repeated)")
	flags.StringVarP(&o.transport, "transport", "t", "", "how the address is spoken to: `http` (default) or sse")
	flags.StringVar(&o.cwd, "cwd", "", "start the program in this `directory`")
	flags.StringArrayVar(&o.tags, "tag", nil, "a `word` to select servers by (may be repeated)")
	flags.StringVar(&o.clientID, "client-id", "", "OAuth client `id` for logging in, where the provider gave you one")
	flags.StringSliceVar(&o.scopes, "scope", nil, "OAuth `scopes` to ask for")
	flags.StringArrayVar(&o.allow, "allow-tool", nil, "offer only tools that match this `pattern` (may be repeated)")
	flags.StringArrayVar(&o.deny, "deny-tool", nil, "never offer tools that match this `pattern` (may be repeated)")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long a call may take (default 60s)")
	flags.BoolVar(&o.disabled, "disabled", false, "add it switched off")
	flags.BoolVar(&o.project, "project", false, "write the project's file instead of your own")
	flags.BoolVar(&o.replace, "replace", false, "change the server if there is one of that name")
	flags.BoolVar(&o.rehearse, "dry-run", false, "show what would be written, and write nothing")
	_ = c.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions([]string{"http", "sse"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}

func addRun(_ context.Context, o *addOptions) error {
	f := o.f
	s, err := o.server()
	if err != nil {
		return err
	}
	t, err := cmdutil.ChooseTarget(f, o.project)
	if err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return cmdutil.Usagef("usher add --help", "%s: %v", s.Name, err)
	}
	anchor(f, &s, t)
	if t.Layer == config.LayerProject {
		if err := cmdutil.RefuseSecrets(s, t); err != nil {
			return err
		}
	}
	before, err := cmdutil.ReadTarget(f, t)
	if err != nil {
		return err
	}
	_, exists := before.Server(s.Name)
	change := func(d *edit.Document) error { return d.Add(s, o.replace) }
	if o.rehearse {
		err = cmdutil.Rehearse(t.Path, change)
	} else {
		_, err = edit.Update(t.Path, change)
	}
	if errors.Is(err, edit.ErrExists) {
		return cmdutil.WithHint(fmt.Errorf("a server named %s is in %s already", config.Visible(s.Name), f.Short(t.Path)),
			"add --replace to change it, or choose another name")
	}
	if err != nil {
		return err
	}
	addSaid(f, o, t, s, exists)
	return nil
}

// anchor makes paths that were given from here mean the same in the file, where
// they are read from the directory of the file.
func anchor(f *cmdutil.Factory, s *config.Server, t cmdutil.Target) {
	base := config.Server{Origin: config.Origin{File: t.Path, Layer: t.Layer}}.BaseDir()
	from := func(path string) string {
		if filepath.IsAbs(path) || strings.HasPrefix(path, "~/") || strings.Contains(path, "${") {
			return path
		}
		path = filepath.Join(f.IO.System.WithDefaults().Workdir, path)
		if rel, ok := cmdutil.Below(base, path); ok && t.Layer == config.LayerProject {
			return rel // the project may lie elsewhere on other machines
		}
		return path
	}
	if s.Cwd != "" {
		s.Cwd = from(s.Cwd)
	}
	if t.Layer != config.LayerProject && (strings.HasPrefix(s.Command, "./") || strings.HasPrefix(s.Command, "../")) {
		s.Command = from(s.Command)
	}
}

// addSaid tells what was written and what comes next.
func addSaid(f *cmdutil.Factory, o *addOptions, t cmdutil.Target, s config.Server, existed bool) {
	verb, done := "add", "added "+s.Name+" to"
	if existed {
		verb, done = "replace", "replaced "+s.Name+" in"
	}
	if o.rehearse {
		fmt.Fprintf(f.IO.Out, "would %s %s in %s:\n%q: %s\n", verb, s.Name, cmdutil.Clean(f.Short(t.Path)), s.Name, cmdutil.MaskedEntry(s))
		return
	}
	f.Note("%s your %s, %s", done, t.Word(), cmdutil.Clean(f.Short(t.Path)))
	if len(cmdutil.LiteralSecrets(s)) > 0 && t.Layer != config.LayerProject {
		name := cmdutil.VariableName(s.Name, cmdutil.LiteralSecrets(s)[0])
		f.Note("  that file now contains a credential; use ${env:%s} to keep it out", name)
	}
	overlaps(f, t, s.Name)
	s.Origin = config.Origin{File: t.Path, Layer: t.Layer}
	switch {
	case s.NeedsApproval():
		f.Note("next: %s, as for everything a project file starts", cmdutil.Remedy(f, "usher approve "+s.Name))
	case s.Disabled:
		f.Note("next: it is switched off; remove \"disabled\" to use it")
	default:
		f.Note("next: usher tools %s", s.Name)
	}
}

// overlaps says when another file has a server of the same name.
func overlaps(f *cmdutil.Factory, t cmdutil.Target, name string) {
	if t.Layer == config.LayerFlag {
		return
	}
	cfg, err := config.Load(f.LoadOptions())
	if err != nil {
		return // the file itself was written; listing will tell
	}
	s, ok := cfg.Server(name)
	switch {
	case !ok:
	case s.Origin.File != t.Path:
		f.Note("  but %s at %s wins over it here", name, cmdutil.Clean(cmdutil.Origin(f, s.Origin)))
	case s.Origin.Shadows != "":
		f.Note("  it takes the place of the one at %s", cmdutil.Clean(s.Origin.Shadows))
	}
}
