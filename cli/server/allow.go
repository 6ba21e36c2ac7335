package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/edit"
	"github.com/usher-mcp/usher/internal/pattern"
)

type ruleOptions struct {
	f        *cmdutil.Factory
	kind     string // allow or deny
	rules    []string
	remove   bool
	list     bool
	json     bool
	rehearse bool
}

func newCmdAllow(f *cmdutil.Factory, runF func(context.Context, *ruleOptions) error) *cobra.Command {
	c := newCmdRule(f, runF, "allow", "Add an allow rule")
	c.Long = `Add a rule to usher.policy.allow of your own file. Once there is an allow rule,
only what matches one may be used; a deny rule always wins.

A rule is a pattern over names: SERVER, or SERVER/TOOL, where * and ? stand for
any characters.`
	c.Example = `  usher allow github             every tool of github
  usher allow 'github/get_*'     only its tools that start with get_
  usher allow --list
  usher allow --remove github`
	return c
}

func newCmdDeny(f *cmdutil.Factory, runF func(context.Context, *ruleOptions) error) *cobra.Command {
	c := newCmdRule(f, runF, "deny", "Add a deny rule")
	c.Long = `Add a rule to usher.policy.deny of your own file. What matches it cannot be used,
whatever else is allowed.

A rule is a pattern over names: SERVER, or SERVER/TOOL, where * and ? stand for
any characters.`
	c.Example = `  usher deny 'github/delete_*'
  usher deny '*/drop_table'
  usher deny --list
  usher deny --remove 'github/delete_*'`
	return c
}

func newCmdRule(f *cmdutil.Factory, runF func(context.Context, *ruleOptions) error, kind, short string) *cobra.Command {
	o := &ruleOptions{f: f, kind: kind}
	if runF == nil {
		runF = ruleRun
	}
	c := &cobra.Command{
		Use: kind + " RULE…", Short: short, GroupID: "config",
		Args:              cmdutil.RangeArgs(0, -1),
		ValidArgsFunction: completeRules(f, o),
		RunE: func(c *cobra.Command, args []string) error {
			o.rules = args
			return runF(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.remove, "remove", false, "remove the rule")
	c.Flags().BoolVar(&o.list, "list", false, "show the rules and the files that define them")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON (with --list)")
	c.Flags().BoolVar(&o.rehearse, "dry-run", false, "say what would change, and change nothing")
	return c
}

func ruleRun(_ context.Context, o *ruleOptions) error {
	f := o.f
	switch {
	case o.list && (len(o.rules) > 0 || o.remove):
		return cmdutil.Usagef("usher "+o.kind+" --list", "--list only shows")
	case o.json && !o.list:
		return cmdutil.Usagef("usher "+o.kind+" --list --json", "--json goes with --list")
	case !o.list && len(o.rules) == 0:
		return cmdutil.Usagef("usher "+o.kind+" SERVER/TOOL\nusher "+o.kind+" --list", "usher %s needs a RULE", o.kind)
	}
	for _, rule := range o.rules {
		if err := config.CheckRule(rule); err != nil && !o.remove {
			return cmdutil.Usagef("write SERVER or SERVER/TOOL, with * for any characters", "%v", err)
		}
	}
	cfg, err := f.Config()
	if err != nil {
		return err
	}
	if o.list {
		return ruleList(f, cfg, o)
	}
	t, err := cmdutil.ChooseTarget(f, false)
	if err != nil {
		return err
	}
	done, err := o.edit(t)
	if err != nil {
		return err
	}
	for _, said := range done {
		f.Note("%s %s", said, cmdutil.Clean(f.Short(t.Path)))
	}
	ruleConsequences(f, o, cfg)
	return nil
}

// edit changes the file and returns what was done to each rule.
func (o *ruleOptions) edit(t cmdutil.Target) ([]string, error) {
	var done []string
	change := func(d *edit.Document) error {
		done = nil // a file that changed meanwhile is edited again
		for _, rule := range o.rules {
			said, err := o.change(d, rule)
			if err != nil {
				return err
			}
			done = append(done, said)
		}
		return nil
	}
	if o.rehearse {
		err := cmdutil.Rehearse(t.Path, change)
		for i, said := range done {
			done[i] = "would have " + said
		}
		return done, err
	}
	_, err := edit.Update(t.Path, change)
	return done, err
}

func (o *ruleOptions) change(d *edit.Document, rule string) (string, error) {
	shown := fmt.Sprintf("%q", o.kind+" "+config.Unquoted(rule))
	if o.remove {
		found, err := d.RemoveRule(o.kind, rule)
		if err == nil && !found {
			err = cmdutil.WithHint(fmt.Errorf("there is no rule %s in that file", shown), "usher %s --list", o.kind)
		}
		return "removed " + shown + " from", err
	}
	before := d.Bytes()
	if err := d.AddRule(o.kind, rule); err != nil {
		return "", err
	}
	if slices.Equal(before, d.Bytes()) {
		return shown + " stands already in", nil
	}
	return "added " + shown + " to", nil
}

// ruleConsequences says what the rules mean for the servers there are.
func ruleConsequences(f *cmdutil.Factory, o *ruleOptions, before *config.Config) {
	for _, rule := range o.rules {
		server, _, _ := strings.Cut(rule, "/")
		matched := matching(before, server)
		switch {
		case len(matched) > 0:
			f.Note("  it concerns %s", cmdutil.Clean(strings.Join(matched, ", ")))
		case !o.remove:
			f.Note("  no server matches it yet%s", cmdutil.Clean(cmdutil.DidYouMean(before.Nearest(server))))
		}
	}
	rules := before.Usher.Policy
	switch {
	case o.kind == "allow" && !o.remove && len(rules.Allow) == 0:
		f.Note("  this is the first allow rule: from now on only what an allow rule matches may be used")
	case o.kind == "allow" && o.remove && !slices.ContainsFunc(rules.Allow, func(r config.Rule) bool { return !slices.Contains(o.rules, r.Pattern) }):
		f.Note("  no allow rule is left: everything that is not denied may be used")
	case o.kind == "allow" && !o.remove:
		for _, r := range rules.Deny {
			if slices.Contains(o.rules, r.Pattern) {
				f.Note("  but %q at %s wins over it", "deny "+config.Unquoted(r.Pattern), cmdutil.Clean(cmdutil.Origin(f, r.Origin)))
			}
		}
	}
}

func matching(cfg *config.Config, servers string) []string {
	var out []string
	for _, s := range cfg.Servers {
		if pattern.Match(servers, s.Name) {
			out = append(out, s.Name)
		}
	}
	return out
}

func ruleList(f *cmdutil.Factory, cfg *config.Config, o *ruleOptions) error {
	rules := o.of(cfg)
	if o.json {
		type rule struct {
			Rule string `json:"rule"`
			File string `json:"file,omitempty"`
			Line int    `json:"line,omitempty"`
		}
		out := []rule{}
		for _, r := range rules {
			out = append(out, rule{r.Pattern, r.Origin.File, r.Origin.Line})
		}
		return f.PrintJSON(map[string]any{o.kind: out})
	}
	if len(rules) == 0 {
		f.Note("there are no %s rules%s", o.kind, map[bool]string{true: "; everything that is not denied may be used"}[o.kind == "allow"])
		return nil
	}
	t := cmdutil.Table{Head: []string{"RULE", "FROM"}}
	for _, r := range rules {
		t.Add(config.Unquoted(r.Pattern), cmdutil.Clean(cmdutil.Origin(f, r.Origin)))
	}
	t.Write(f.IO.Out, 0)
	return nil
}

// of returns the rules of the kind that are in force.
func (o *ruleOptions) of(cfg *config.Config) []config.Rule {
	if o.kind == "deny" {
		return cfg.Usher.Policy.Deny
	}
	return cfg.Usher.Policy.Allow
}

// completeRules completes SERVER and SERVER/TOOL, or the rules there are when one
// is to be removed.
func completeRules(f *cmdutil.Factory, o *ruleOptions) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if o.remove {
			cfg, err := config.Load(f.LoadOptions())
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			var out []cobra.Completion
			for _, r := range o.of(cfg) {
				out = append(out, r.Pattern)
			}
			return cmdutil.Offer(out, prefix), cobra.ShellCompDirectiveNoFileComp
		}
		if server, _, found := strings.Cut(prefix, "/"); found {
			return cmdutil.ToolNames(f, c, server, server+"/", prefix)
		}
		names, directive := cmdutil.ServerNames(f, args, prefix)
		return names, directive | cobra.ShellCompDirectiveNoSpace
	}
}
