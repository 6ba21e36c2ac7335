package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/cli/login"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients"
)

type initOptions struct {
	f                         *cmdutil.Factory
	yes, rehearse, undo, json bool
	noLink, noLogin           bool
	replace                   bool
}

func newCmdInit(f *cmdutil.Factory, runF func(context.Context, *initOptions) error) *cobra.Command {
	o := &initOptions{f: f}
	if runF == nil {
		runF = initRun
	}
	c := &cobra.Command{
		Use: "init", Short: "Set usher up: import servers, log in, point your agents at it", GroupID: "config", Args: cmdutil.ExactArgs(0),
		Long: `Look for the agents and editors on this machine, show which servers they have, and
after one question import them. Then usher offers to point those clients at itself
and to log in where that is needed; each can be left for later.

Every step can be undone: usher init --undo gives all files back as they were. What
you have changed since stays; only what init added is taken out.

With --yes nothing is asked: servers are imported and clients are linked. Logging in
needs a person, so the command for it is printed.`,
		Example: `  usher init
  usher init --dry-run
  usher init --yes --no-link
  usher init --undo`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	flags := c.Flags()
	flags.BoolVarP(&o.yes, "yes", "y", false, "import and link without being asked")
	flags.BoolVar(&o.rehearse, "dry-run", false, "show what would happen, and change nothing")
	flags.BoolVar(&o.undo, "undo", false, "take back what usher init did")
	flags.BoolVar(&o.noLink, "no-link", false, "leave the clients' own files alone")
	flags.BoolVar(&o.noLogin, "no-login", false, "do not offer to log in")
	flags.BoolVar(&o.replace, "replace", false, "move the clients' own servers into usher, see usher link")
	flags.BoolVar(&o.json, "json", false, "print it as JSON; writes only with --yes")
	return c
}

func initRun(ctx context.Context, o *initOptions) error {
	f := o.f
	switch {
	case o.yes && o.rehearse:
		return cmdutil.Usagef("leave one of them out", "--yes writes and --dry-run does not")
	case o.replace && o.noLink:
		return cmdutil.Usagef("leave one of them out", "--replace changes the clients' files and --no-link does not")
	case f.ConfigFile != "":
		return cmdutil.Usagef("leave out --config; usher import takes it", "usher init sets up your own file")
	case o.undo:
		return initUndo(ctx, f, o)
	}
	s, err := newFirstRun(f)
	if err != nil {
		return err
	}
	if o.json {
		return initQuietly(f, s, o)
	}
	s.show()
	if o.rehearse {
		return nil
	}
	if err := s.importStep(ctx, o); err != nil {
		return err
	}
	linked, err := s.linkStep(ctx, o)
	if err != nil {
		return err
	}
	if err := s.loginStep(ctx, o); err != nil {
		return err
	}
	s.said(linked)
	return nil
}

// firstRun is what usher init does, step by step.
type firstRun struct {
	*cmdutil.Factory
	target  cmdutil.Target
	imports *clients.Plan
	found   []clients.Presence
	names   []string // of the clients that are not linked yet
	record  *initRecord
}

func newFirstRun(f *cmdutil.Factory) (*firstRun, error) {
	t, err := cmdutil.ChooseTarget(f, false)
	if err != nil {
		return nil, err
	}
	s := &firstRun{Factory: f, target: t}
	if s.imports, err = importPlan(f, t, &importOptions{}); err != nil {
		return nil, err
	}
	l, err := links(f)
	if err != nil {
		return nil, err
	}
	survey, err := l.Survey()
	if err != nil {
		return nil, err
	}
	for _, p := range survey {
		if p.Found {
			s.found = append(s.found, p)
		}
		if p.Found && len(p.Linked) == 0 && p.Err == nil {
			s.names = append(s.names, p.Client)
		}
	}
	s.record, err = readInit(f)
	return s, err
}

// show prints what is here and what would be imported.
func (s *firstRun) show() {
	if len(s.found) == 0 {
		s.Note("no other client was found on this machine")
	} else {
		program, _ := thisProgram() // unknown: no entry is called another's
		t := cmdutil.Table{Head: []string{"CLIENT", "STATE", "SERVERS", "FILE"}}
		for _, p := range s.found {
			servers := fmt.Sprint(p.Servers)
			if p.Err != nil {
				servers = "–"
			}
			t.Add(p.Client, linkState(p, program), servers, cmdutil.Clean(s.Short(p.File)))
		}
		t.Write(s.IO.Out, 0)
		fmt.Fprintln(s.IO.Out)
	}
	importShow(s.Factory, s.imports)
}

// importStep asks once and imports.
func (s *firstRun) importStep(ctx context.Context, o *initOptions) error {
	if len(s.imports.Add) == 0 {
		return nil
	}
	if !o.yes {
		agreed, err := s.Confirm(ctx, fmt.Sprintf("import %s into %s?", cmdutil.Count(len(s.imports.Add), "server"), s.Short(s.target.Path)))
		if err != nil {
			return cmdutil.WithHint(err, "%s", cmdutil.AgreeHint(s.Factory, "look at what is shown, then: usher init --yes"))
		}
		if !agreed {
			s.Note("nothing was imported; usher import does it later")
			return nil
		}
	}
	if err := s.applyImports(); err != nil {
		return err
	}
	s.Note("imported %s into %s", cmdutil.Count(len(s.imports.Add), "server"), cmdutil.Clean(s.Short(s.target.Path)))
	return nil
}

// applyImports imports, after keeping the file as it was.
func (s *firstRun) applyImports() error {
	if err := s.keepBefore(); err != nil {
		return err
	}
	if err := s.imports.Apply(); err != nil {
		return err
	}
	s.Cfg = nil // what was loaded before is out of date
	return s.keepAfter(s.imports.Add)
}

// linkStep offers to link the clients that are not linked yet, and returns those
// that are now.
func (s *firstRun) linkStep(ctx context.Context, o *initOptions) ([]string, error) {
	if o.noLink || len(s.names) == 0 {
		return nil, nil
	}
	w, err := s.plannedLinks(s.names, o)
	if err != nil {
		return nil, err
	}
	if !o.yes {
		fmt.Fprintln(s.IO.Out)
		showLinks(s.Factory, w)
		agreed, err := s.Confirm(ctx, fmt.Sprintf("point %s at usher?", strings.Join(s.names, ", ")))
		if err != nil {
			return nil, cmdutil.WithHint(err, "%s", cmdutil.AgreeHint(s.Factory, "look at what is shown, then: usher init --yes"))
		}
		if !agreed {
			s.Note("not linked; usher link --all does it later")
			return nil, nil
		}
	}
	if err := s.keepLinks(w); err != nil {
		return nil, err
	}
	return s.names, applyLinks(s.Factory, w)
}

func (s *firstRun) plannedLinks(names []string, o *initOptions) (*linking, error) {
	l, err := links(s.Factory)
	if err != nil {
		return nil, err
	}
	w, err := planLinks(s.Factory, l, &linkOptions{clients: names, replace: o.replace})
	if err == nil {
		w.step = true
	}
	return w, err
}

// loginStep offers to log in, on a terminal.
func (s *firstRun) loginStep(ctx context.Context, o *initOptions) error {
	if o.noLogin || o.yes || !s.IO.InTTY {
		return nil
	}
	cfg, err := s.Config()
	if err != nil {
		return err
	}
	remote := slices.ContainsFunc(cfg.Servers, func(srv config.Server) bool {
		return srv.URL != "" && srv.Problem == nil && !srv.Disabled && len(srv.Headers) == 0
	})
	if !remote {
		return nil
	}
	agreed, err := s.Confirm(ctx, "log in where that is needed?")
	if err != nil || !agreed {
		return nil // usher login does it later, as is told
	}
	return login.Missing(ctx, s.Factory, 5*time.Minute)
}

// said tells what comes next.
func (s *firstRun) said(linked []string) {
	s.Note("next")
	s.Note("  usher status             how each server is")
	s.Note("  usher login --missing    log in where that is needed")
	if len(linked) < len(s.names) {
		s.Note("  usher link --all         point your agents at usher")
	}
	s.Note("undo all of it with: usher init --undo")
}
