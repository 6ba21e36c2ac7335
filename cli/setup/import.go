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
	"github.com/usher-mcp/usher/vault"
)

type importOptions struct {
	f        *cmdutil.Factory
	sources  []string
	all      bool
	replace  bool
	yes      bool
	rehearse bool
	project  bool
	move     bool
	json     bool
}

func newCmdImport(f *cmdutil.Factory, runF func(context.Context, *importOptions) error) *cobra.Command {
	o := &importOptions{f: f}
	if runF == nil {
		runF = importRun
	}
	c := &cobra.Command{
		Use: "import [CLIENT|FILE…]", Short: "Import servers from other clients", GroupID: "config",
		Long: `Read the MCP servers of other clients on this machine and write them to your own
file, after showing them and asking once. Their files are only read. Comments and
layout of yours stay as they are; servers you already have are left alone.

Without a CLIENT all of them are looked at: ` + strings.Join(clientNames(), ", ") + `.

Project files may be untrusted: their servers are left out unless --all is given.
With --project usher writes the project's file, and literal credentials become
${env:…}. With --move-secrets they go into usher's encrypted store, and the file gets
${secret:…} in their place.`,
		Example: `  usher import
  usher import cursor claude-code
  usher import ./servers.json --dry-run
  usher import --move-secrets         credentials into the encrypted store
  usher import --yes --json`,
		Args: cmdutil.RangeArgs(0, -1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			names := slices.DeleteFunc(clientNames(), func(n string) bool { return slices.Contains(args, n) })
			return cmdutil.Offer(names, prefix), cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.sources = args
			return runF(c.Context(), o)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&o.all, "all", false, "also import servers from project files")
	flags.BoolVar(&o.replace, "replace", false, "change servers you already have")
	flags.BoolVarP(&o.yes, "yes", "y", false, "write without being asked")
	flags.BoolVar(&o.rehearse, "dry-run", false, "show what would be written, and write nothing")
	flags.BoolVar(&o.project, "project", false, "write the project's file instead of your own")
	flags.BoolVar(&o.move, "move-secrets", false, "move literal credentials to usher's encrypted store")
	flags.BoolVar(&o.json, "json", false, "print what was found as JSON; writes only with --yes")
	return c
}

func clientNames() []string {
	var out []string
	for _, c := range clients.List() {
		out = append(out, c.Name)
	}
	return out
}

func importRun(ctx context.Context, o *importOptions) error {
	f := o.f
	if o.yes && o.rehearse {
		return cmdutil.Usagef("leave one of them out", "--yes writes and --dry-run does not")
	}
	if o.move && o.project {
		return cmdutil.Usagef("leave one of them out", "--project is for everybody, and the store of --move-secrets is yours alone")
	}
	t, err := cmdutil.ChooseTarget(f, o.project)
	if err != nil {
		return err
	}
	plan, err := importPlan(f, t, o)
	if err != nil {
		return err
	}
	if o.json {
		return importQuietly(ctx, f, plan, o)
	}
	importShow(f, plan)
	if len(plan.Add) == 0 || o.rehearse {
		return nil
	}
	if !o.yes {
		agreed, err := f.Confirm(ctx, fmt.Sprintf("write %s to %s?", cmdutil.Count(len(plan.Add), "server"), f.Short(t.Path)))
		if err != nil {
			return cmdutil.WithHint(err, "%s", cmdutil.AgreeHint(f, "look at what is shown, then: usher import %s", strings.Join(append(slices.Clone(o.sources), "--yes"), " ")))
		}
		if !agreed {
			f.Note("nothing was written")
			return nil
		}
	}
	if err := importApply(ctx, f, plan, o); err != nil {
		return err
	}
	importSaid(f, plan, t)
	return nil
}

// importApply stores the credentials that were moved out, then writes the file: a
// placeholder without a value would be worse than a value nobody asks for.
func importApply(ctx context.Context, f *cmdutil.Factory, plan *clients.Plan, o *importOptions) error {
	if o.move {
		h, err := f.Open(ctx)
		if err != nil {
			return err
		}
		for _, n := range plan.Add {
			for _, m := range n.Secrets {
				if err := keepSecret(ctx, h.Secrets(), m, o.replace); err != nil {
					return err
				}
			}
		}
	}
	return plan.Apply()
}

// keepSecret stores a credential; another one of the same name is not lost to it.
func keepSecret(ctx context.Context, secrets *vault.Secrets, m config.MovedSecret, replace bool) error {
	value := vault.NewSecret(m.Reveal())
	switch old, err := secrets.Get(ctx, m.Name); {
	case err != nil && !errors.Is(err, vault.ErrNotFound):
		return err
	case err == nil && !old.Equal(value) && !replace:
		return cmdutil.WithHint(fmt.Errorf("there is another secret named %s already; nothing was written", m.Name), "usher secret list shows it; --replace replaces it")
	}
	return secrets.Set(ctx, m.Name, value)
}

// importQuietly writes if it was told to, and prints JSON.
func importQuietly(ctx context.Context, f *cmdutil.Factory, plan *clients.Plan, o *importOptions) error {
	write := o.yes && len(plan.Add) > 0
	if write {
		if err := importApply(ctx, f, plan, o); err != nil {
			return err
		}
	}
	return f.PrintJSON(importJSON(plan, write))
}

// importPlan reads the sources and decides what of them would be written.
func importPlan(f *cmdutil.Factory, t cmdutil.Target, o *importOptions) (*clients.Plan, error) {
	found, err := importSources(f, o)
	if err != nil {
		return nil, err
	}
	// What would be read is not what would be written to.
	found = slices.DeleteFunc(found, func(src clients.Found) bool { return src.File == t.Path })
	project := t.Layer == config.LayerProject
	plan, err := clients.NewPlan(found, clients.Target{File: t.Path, Project: project, Replace: o.replace, MoveSecrets: o.move})
	if err != nil {
		return nil, err
	}
	if !o.all && !project {
		plan.Add = slices.DeleteFunc(plan.Add, func(n clients.Planned) bool {
			if n.Project {
				plan.Skipped = append(plan.Skipped, clients.Skipped{From: n.From[0], Name: n.Server.Name, Reason: "it is in a project file; --all imports it too"})
			}
			return n.Project
		})
	}
	for i := range plan.Add {
		if project {
			secretsToVariables(&plan.Add[i])
		}
	}
	return plan, nil
}

// importSources reads the clients and files that were named, all clients when none
// was.
func importSources(f *cmdutil.Factory, o *importOptions) ([]clients.Found, error) {
	var names []string
	var files []clients.Found
	for _, source := range o.sources {
		if slices.Contains(clientNames(), source) {
			names = append(names, source)
			continue
		}
		if !strings.ContainsAny(source, `./\`) {
			return nil, cmdutil.Usagef("usher import "+strings.Join(clientNames(), "|"), "there is no client %s; a file is named with its path", config.Visible(source))
		}
		src, err := clients.ReadFile(f.IO.System, source)
		if err != nil {
			return nil, cmdutil.WithHint(fmt.Errorf("import %s: %w", config.Unquoted(source), err), "usher import --help")
		}
		files = append(files, src)
	}
	if len(names) == 0 && len(files) > 0 {
		return files, nil
	}
	found, err := clients.Find(f.IO.System, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if i := slices.IndexFunc(found, func(src clients.Found) bool { return src.Client == name && src.Err != nil }); i >= 0 {
			return nil, cmdutil.WithHint(fmt.Errorf("import %s: %w", name, found[i].Err), "fix that file, or name others to import from")
		}
		if !slices.ContainsFunc(found, func(src clients.Found) bool { return src.Client == name }) {
			return nil, cmdutil.WithHint(fmt.Errorf("%s has no file with servers on this machine", name), "usher import FILE reads a file anywhere")
		}
	}
	return append(found, files...), nil
}

// secretsToVariables writes ${env:…} where a credential was moved out: a project
// is shared, and everybody has a variable of their own.
func secretsToVariables(n *clients.Planned) {
	for _, m := range n.Secrets {
		_, key, _ := strings.Cut(m.Name, "/")
		from, to := "${secret:"+m.Name+"}", "${env:"+cmdutil.VariableName(n.Server.Name, key)+"}"
		swap := func(p *string) { *p = strings.ReplaceAll(*p, from, to) }
		swap(&n.Server.URL)
		swap(&n.Server.Command)
		swap(&n.Server.HeadersFrom)
		for i := range n.Server.Args {
			swap(&n.Server.Args[i])
		}
		for _, values := range []map[string]string{n.Server.Env, n.Server.Headers} {
			for k, v := range values {
				values[k] = strings.ReplaceAll(v, from, to)
			}
		}
		if n.Server.OAuth != nil {
			swap(&n.Server.OAuth.ClientSecret)
		}
		for i := range n.Notes {
			swap(&n.Notes[i])
		}
	}
}

// importSaid tells what was written and what comes next.
func importSaid(f *cmdutil.Factory, plan *clients.Plan, t cmdutil.Target) {
	f.Note("wrote %s to your %s, %s", cmdutil.Count(len(plan.Add), "server"), t.Word(), cmdutil.Clean(f.Short(t.Path)))
	literal, moved := 0, 0
	for _, n := range plan.Add {
		if plan.Target.MoveSecrets {
			moved += len(n.Secrets)
		}
		if len(cmdutil.LiteralSecrets(n.Server)) > 0 {
			literal++
		}
	}
	if moved > 0 {
		f.Note("  %s moved to the encrypted store: usher secret list", cmdutil.Count(moved, "credential"))
	}
	if literal > 0 {
		f.Note("  %s a credential written out, as in the file it came from", cmdutil.Count(literal, "server")+map[bool]string{true: " holds", false: " hold"}[literal == 1])
	}
	next := "usher tools " + plan.Add[0].Server.Name
	if t.Layer == config.LayerProject {
		next = cmdutil.Remedy(f, "usher approve")
	}
	f.Note("next: usher list, then %s", next)
}

// importShow prints what was found and what would become of it, without
// credentials.
func importShow(f *cmdutil.Factory, plan *clients.Plan) {
	if len(plan.Add) == 0 && len(plan.Skipped) == 0 {
		f.Note("nothing to import: no other client has servers here")
		f.Note("next: usher add NAME URL")
		return
	}
	t := cmdutil.Table{Head: []string{"NAME", "WHERE", "FOUND IN"}}
	for _, n := range plan.Add {
		from := make([]string, len(n.From))
		for i, file := range n.From {
			from[i] = shortSource(f, file)
		}
		t.Add("+ "+config.Unquoted(n.Server.Name), cmdutil.ServerAddress(n.Server.Masked()), cmdutil.Clean(strings.Join(from, ", ")))
	}
	if len(plan.Add) > 0 {
		t.Write(f.IO.Out, 0)
	}
	for _, n := range plan.Add {
		name := config.Unquoted(n.Server.Name)
		for _, line := range fieldsBeyond(n.Server.Masked()) {
			fmt.Fprintf(f.IO.Out, "  %s: %s\n", name, line)
		}
		for _, note := range n.Notes {
			fmt.Fprintf(f.IO.Out, "  %s: %s\n", name, config.Unquoted(note))
		}
	}
	for _, s := range plan.Skipped {
		name := config.Unquoted(s.Name)
		if name != "" {
			name += ": "
		}
		f.Note("left out: %s%s (%s)", name, cmdutil.CleanLine(s.Reason), cmdutil.Clean(shortSource(f, s.From)))
	}
	if len(plan.Add) == 0 {
		f.Note("nothing new to import")
	}
}

// fieldsBeyond describes what of a server the table does not show.
func fieldsBeyond(s config.Server) []string {
	var out []string
	for _, line := range s.Describe() {
		name, value, _ := strings.Cut(line, " ")
		field, _, _ := strings.Cut(name, "[")
		if !slices.Contains([]string{"server", "file", "transport", "title", "command", "args", "url"}, field) {
			out = append(out, name+" "+strings.TrimLeft(value, " "))
		}
	}
	return out
}

// shortSource shortens the path of "client: path".
func shortSource(f *cmdutil.Factory, from string) string {
	client, path, found := strings.Cut(from, ": ")
	if !found || !filepath.IsAbs(path) {
		return from
	}
	return client + ": " + f.Short(path)
}
