package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/edit"
)

type addOptions struct {
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

func newCmdAdd(a *factory) *cobra.Command {
	var o addOptions
	c := &cobra.Command{
		Use: "add NAME URL|-- COMMAND…", Short: "Add a server to your configuration", GroupID: "config",
		Long: `Add a server to your own file, or with --project to the project's .mcp.json. The
comments and the layout of the file stay as they are. Nothing is started.

Values may hold placeholders that are filled in when the server is used:
${env:NAME}, ${NAME:-default}, ${file:PATH}, ${secret:NAME}. Write them in single
quotes, or the shell fills them in. A project file never gets a literal
credential.`,
		Example: `  usher add docs https://example.com/mcp
  usher add docs https://example.com/mcp --header 'Authorization: Bearer ${env:DOCS_TOKEN}'
  usher add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  usher add db --env DATABASE_URL -- my-db-server --read-only
  usher add docs https://example.com/mcp --project --dry-run`,
		Args: between(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.name, o.words, o.command = args[0], args[1:], c.ArgsLenAtDash() >= 0
			if c.ArgsLenAtDash() == 0 {
				return usagef(c.UseLine(), "the name of the server goes before --")
			}
			if dash := c.ArgsLenAtDash(); dash > 1 {
				return usagef(c.UseLine(), "give an address or a command, not both: %s stands before --", config.Visible(args[1]))
			}
			return a.addRun(o)
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usagef("what belongs to a command goes after --: usher add NAME -- COMMAND ARGS…", "%v", err)
	})
	f := c.Flags()
	f.StringArrayVarP(&o.headers, "header", "H", nil, "send this `NAME:VALUE` with every request (may be repeated)")
	f.StringArrayVarP(&o.env, "env", "e", nil, "set `NAME=VALUE` for the program; NAME alone passes yours on (may be repeated)")
	f.StringVarP(&o.transport, "transport", "t", "", "how the address is spoken to: `http` (default) or sse")
	f.StringVar(&o.cwd, "cwd", "", "start the program in this `directory`")
	f.StringArrayVar(&o.tags, "tag", nil, "a `word` to select servers by (may be repeated)")
	f.StringVar(&o.clientID, "client-id", "", "OAuth client `id` for logging in, where the provider gave you one")
	f.StringSliceVar(&o.scopes, "scope", nil, "OAuth `scopes` to ask for")
	f.StringArrayVar(&o.allow, "allow-tool", nil, "offer only tools that match this `pattern` (may be repeated)")
	f.StringArrayVar(&o.deny, "deny-tool", nil, "never offer tools that match this `pattern` (may be repeated)")
	f.DurationVar(&o.timeout, "timeout", 0, "how long a call may take (default 60s)")
	f.BoolVar(&o.disabled, "disabled", false, "add it switched off")
	f.BoolVar(&o.project, "project", false, "write the project's file instead of your own")
	f.BoolVar(&o.replace, "replace", false, "change the server if there is one of that name")
	f.BoolVar(&o.rehearse, "dry-run", false, "show what would be written, and write nothing")
	_ = c.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions([]string{"http", "sse"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}

func (a *factory) addRun(o addOptions) error {
	s, err := o.server()
	if err != nil {
		return err
	}
	t, err := a.target(o.project)
	if err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return usagef("usher add --help", "%s: %v", s.Name, err)
	}
	a.anchor(&s, t)
	if t.layer == config.LayerProject {
		if err := refuseSecrets(s, t); err != nil {
			return err
		}
	}
	before, err := a.current(t)
	if err != nil {
		return err
	}
	_, exists := before.Server(s.Name)
	change := func(d *edit.Document) error { return d.Add(s, o.replace) }
	if o.rehearse {
		err = rehearse(t.path, change)
	} else {
		_, err = edit.Update(t.path, change)
	}
	if errors.Is(err, edit.ErrExists) {
		return withHint(fmt.Errorf("a server named %s is in %s already", config.Visible(s.Name), a.short(t.path)),
			"add --replace to change it, or choose another name")
	}
	if err != nil {
		return err
	}
	a.addSaid(o, t, s, exists)
	return nil
}

// anchor makes paths that were given from here mean the same in the file, where
// they are read from the directory of the file.
func (a *factory) anchor(s *config.Server, t target) {
	base := config.Server{Origin: config.Origin{File: t.path, Layer: t.layer}}.BaseDir()
	from := func(path string) string {
		if filepath.IsAbs(path) || strings.HasPrefix(path, "~/") || strings.Contains(path, "${") {
			return path
		}
		path = filepath.Join(a.io.System.WithDefaults().Workdir, path)
		if rel, ok := below(base, path); ok && t.layer == config.LayerProject {
			return rel // the project may lie elsewhere on other machines
		}
		return path
	}
	if s.Cwd != "" {
		s.Cwd = from(s.Cwd)
	}
	if t.layer != config.LayerProject && (strings.HasPrefix(s.Command, "./") || strings.HasPrefix(s.Command, "../")) {
		s.Command = from(s.Command)
	}
}

// addSaid tells what was written and what comes next.
func (a *factory) addSaid(o addOptions, t target, s config.Server, existed bool) {
	verb, done := "add", "added "+s.Name+" to"
	if existed {
		verb, done = "replace", "replaced "+s.Name+" in"
	}
	if o.rehearse {
		fmt.Fprintf(a.io.Out, "would %s %s in %s:\n%q: %s\n", verb, s.Name, clean(a.short(t.path)), s.Name, maskedEntry(s))
		return
	}
	a.note("%s your %s, %s", done, t.word(), clean(a.short(t.path)))
	if len(literalSecrets(s)) > 0 && t.layer != config.LayerProject {
		name := variableName(s.Name, literalSecrets(s)[0])
		a.note("  a credential now stands in that file; ${env:%s} in its place would keep it out", name)
	}
	a.overlaps(t, s.Name)
	s.Origin = config.Origin{File: t.path, Layer: t.layer}
	switch {
	case s.NeedsApproval():
		a.note("next: %s, as for everything a project file starts", a.remedy("usher approve "+s.Name))
	case s.Disabled:
		a.note("next: it is switched off; remove \"disabled\" to use it")
	default:
		a.note("next: usher tools %s", s.Name)
	}
}

// overlaps says when another file has a server of the same name.
func (a *factory) overlaps(t target, name string) {
	if t.layer == config.LayerFlag {
		return
	}
	cfg, err := config.Load(a.loadOptions())
	if err != nil {
		return // the file itself was written; listing will tell
	}
	s, ok := cfg.Server(name)
	switch {
	case !ok:
	case s.Origin.File != t.path:
		a.note("  but %s at %s wins over it here", name, clean(a.origin(s.Origin)))
	case s.Origin.Shadows != "":
		a.note("  it takes the place of the one at %s", clean(s.Origin.Shadows))
	}
}
