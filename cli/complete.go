package cli

import (
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
)

// completeServers completes the first n arguments: a server's name, then the name
// of one of its tools as last known. Negative n means any number of servers.
// Nothing is started for it.
func (a *factory) completeServers(n int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0 || n < 0:
			return a.serverNames(args, prefix)
		case len(args) == 1 && n > 1:
			return a.toolNames(c, args[0], "", prefix)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRules completes SERVER and SERVER/TOOL, or the rules there are when one
// is to be removed.
func (a *factory) completeRules(o *ruleOptions) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if o.remove {
			cfg, err := config.Load(a.loadOptions())
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			var out []cobra.Completion
			for _, r := range o.of(cfg) {
				out = append(out, r.Pattern)
			}
			return offer(out, prefix), cobra.ShellCompDirectiveNoFileComp
		}
		if server, _, found := strings.Cut(prefix, "/"); found {
			return a.toolNames(c, server, server+"/", prefix)
		}
		names, directive := a.serverNames(args, prefix)
		return names, directive | cobra.ShellCompDirectiveNoSpace
	}
}

func (a *factory) serverNames(given []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	cfg, err := config.Load(a.loadOptions())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []cobra.Completion
	for _, s := range cfg.Servers {
		if !slices.Contains(given, s.Name) {
			out = append(out, s.Name)
		}
	}
	return offer(out, prefix), cobra.ShellCompDirectiveNoFileComp
}

func (a *factory) toolNames(c *cobra.Command, server, before, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	h, err := a.open(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []cobra.Completion
	for _, t := range h.Catalog().CachedTools(c.Context(), server) {
		if plainWord(t.Name) {
			out = append(out, cobra.CompletionWithDesc(before+t.Name, firstLine(toolSummary(t.Definition), 60)))
		}
	}
	return offer(out, prefix), cobra.ShellCompDirectiveNoFileComp
}

// offer keeps what goes on from what was typed. A name that a shell would have to
// quote is not offered: some of them were chosen by strangers.
func offer(all []cobra.Completion, prefix string) []cobra.Completion {
	return slices.DeleteFunc(all, func(s cobra.Completion) bool {
		name, _, _ := strings.Cut(s, "\t")
		return !strings.HasPrefix(name, prefix) || !plainWord(name)
	})
}

func plainWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return hostile(r) || unicode.IsSpace(r) || strings.ContainsRune("\"'`$\\;&|<>(){}!#", r)
	})
}
