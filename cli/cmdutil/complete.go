package cmdutil

import (
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/jsonx"
)

// CompleteServers completes the first n arguments: a server's name, then the name
// of one of its tools as last known. Negative n means any number of servers.
// Nothing is started for it.
func CompleteServers(f *Factory, n int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0 || n < 0:
			return ServerNames(f, args, prefix)
		case len(args) == 1 && n > 1:
			return ToolNames(f, c, args[0], "", prefix)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// ServerNames completes the names of servers that begin with prefix and are not given yet.
func ServerNames(f *Factory, given []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	cfg, err := config.Load(f.LoadOptions())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []cobra.Completion
	for _, s := range cfg.Servers {
		if !slices.Contains(given, s.Name) {
			out = append(out, s.Name)
		}
	}
	return Offer(out, prefix), cobra.ShellCompDirectiveNoFileComp
}

// ToolNames completes the names of the tools of a server, from what was last known.
func ToolNames(f *Factory, c *cobra.Command, server, before, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	h, err := f.Open(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []cobra.Completion
	for _, t := range h.Catalog().CachedTools(c.Context(), server) {
		if plainWord(t.Name) {
			out = append(out, cobra.CompletionWithDesc(before+t.Name, FirstLine(ToolSummary(t.Definition), 60)))
		}
	}
	return Offer(out, prefix), cobra.ShellCompDirectiveNoFileComp
}

// Offer keeps what goes on from what was typed. A name that a shell would have to
// quote is not offered: some of them were chosen by strangers.
func Offer(all []cobra.Completion, prefix string) []cobra.Completion {
	return slices.DeleteFunc(all, func(s cobra.Completion) bool {
		name, _, _ := strings.Cut(s, "\t")
		return !strings.HasPrefix(name, prefix) || !plainWord(name)
	})
}

func plainWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return IsHostile(r) || unicode.IsSpace(r) || strings.ContainsRune("\"'`$\\;&|<>(){}!#", r)
	})
}

// ToolSummary is the description in the definition of a tool, or its title.
func ToolSummary(def []byte) string {
	if d := jsonx.GetText(def, "description"); d != "" {
		return d
	}
	return jsonx.GetText(def, "title")
}
