package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
)

// tagFlag adds --tag, which selects servers.
func (a *factory) tagFlag(c *cobra.Command, tags *[]string) {
	c.Flags().StringArrayVar(tags, "tag", nil, "only servers with this `tag` (may be repeated: with any of them)")
	_ = c.RegisterFlagCompletionFunc("tag", func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) { // the flag exists
		cfg, err := config.Load(a.loadOptions())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return offer(cfg.Tags(), prefix), cobra.ShellCompDirectiveNoFileComp
	})
}

// tagged returns the servers with one of the tags that can be used; usable narrows them
// further. None is an error, so that an empty selection never means all servers.
func tagged(cfg *config.Config, tags []string, usable func(config.Server) bool) ([]string, error) {
	for _, tag := range tags {
		if !slices.Contains(cfg.Tags(), tag) {
			err := fmt.Errorf("no server has the tag %s%s", config.Visible(tag), didYouMean(config.Nearest(tag, cfg.Tags())))
			return nil, withHint(err, "usher list --long")
		}
	}
	names := slices.DeleteFunc(cfg.Tagged(tags...), func(name string) bool {
		s, _ := cfg.Server(name)
		return s.Disabled || !usable(s)
	})
	if len(names) == 0 {
		return nil, withHint(fmt.Errorf("no server with the tag %s can be used for this", config.Visible(tags[0])), "usher list")
	}
	return names, nil
}

func anyServer(config.Server) bool { return true }

// canLogIn reports whether there may be something to log in to.
func canLogIn(s config.Server) bool {
	return s.Problem == nil && s.Transport != config.TransportStdio
}
