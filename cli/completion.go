package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
)

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func newCmdCompletion(a *factory) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print a script that completes commands, servers and tools in your shell", GroupID: "config",
		Long: `Print the completion script for bash, zsh, fish or powershell. Names of servers
come from your configuration, names of tools from what was last known of each
server; completing starts nothing.`,
		Example: `  source <(usher completion bash)                                        this session
  usher completion bash > ~/.local/share/bash-completion/completions/usher
  usher completion zsh > "${fpath[1]}/_usher"
  usher completion fish > ~/.config/fish/completions/usher.fish
  usher completion powershell | Out-String | Invoke-Expression`,
		Args:      exactly(1),
		ValidArgs: shells(),
		RunE: func(c *cobra.Command, args []string) error {
			return a.completion(c.Root(), args[0])
		},
	}
}

func (a *factory) completion(root *cobra.Command, shell string) error {
	if !slices.Contains(shells(), shell) {
		return usagef("usher completion "+strings.Join(shells(), "|"), "there is no completion for %s", config.Visible(shell))
	}
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(a.io.Out, true)
	case "zsh":
		return root.GenZshCompletion(a.io.Out)
	case "fish":
		return root.GenFishCompletion(a.io.Out, true)
	}
	return root.GenPowerShellCompletionWithDesc(a.io.Out)
}
