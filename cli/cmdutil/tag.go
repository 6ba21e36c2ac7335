package cmdutil

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
)

// TagFlag adds --tag, which selects servers.
func TagFlag(f *Factory, c *cobra.Command, tags *[]string) {
	c.Flags().StringArrayVar(tags, "tag", nil, "only servers with this `tag` (may be repeated: with any of them)")
	_ = c.RegisterFlagCompletionFunc("tag", func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) { // the flag exists
		cfg, err := config.Load(f.LoadOptions())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return Offer(cfg.Tags(), prefix), cobra.ShellCompDirectiveNoFileComp
	})
}

// Tagged returns the servers with one of the tags that can be used; usable narrows them
// further. None is an error, so that an empty selection never means all servers.
func Tagged(cfg *config.Config, tags []string, usable func(config.Server) bool) ([]string, error) {
	for _, tag := range tags {
		if !slices.Contains(cfg.Tags(), tag) {
			err := fmt.Errorf("no server has the tag %s%s", config.Visible(tag), DidYouMean(config.Nearest(tag, cfg.Tags())))
			return nil, WithHint(err, "usher list --long")
		}
	}
	names := slices.DeleteFunc(cfg.Tagged(tags...), func(name string) bool {
		s, _ := cfg.Server(name)
		return s.Disabled || !usable(s)
	})
	if len(names) == 0 {
		return nil, WithHint(fmt.Errorf("no server with the tag %s can be used for this", config.Visible(tags[0])), "usher list")
	}
	return names, nil
}

// AnyServer accepts every server.
func AnyServer(config.Server) bool { return true }

// CanLogIn reports whether there may be something to log in to.
func CanLogIn(s config.Server) bool {
	return s.Problem == nil && s.Transport != config.TransportStdio
}
