package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func newCmdCompletion(f *cmdutil.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print a script that completes commands, servers and tools in your shell", GroupID: "config",
		Long: `Print the completion script for bash, zsh, fish or powershell. Names of servers
come from your configuration, names of tools from the cached tools of each
server; completion starts nothing.`,
		Example: `  source <(usher completion bash)                                        this session
  usher completion bash > ~/.local/share/bash-completion/completions/usher
  usher completion zsh > "${fpath[1]}/_usher"
  usher completion fish > ~/.config/fish/completions/usher.fish
  usher completion powershell | Out-String | Invoke-Expression`,
		Args:      cmdutil.ExactArgs(1),
		ValidArgs: shells(),
		RunE: func(c *cobra.Command, args []string) error {
			return completionRun(f, c.Root(), args[0])
		},
	}
}

func completionRun(f *cmdutil.Factory, root *cobra.Command, shell string) error {
	if !slices.Contains(shells(), shell) {
		return cmdutil.Usagef("usher completion "+strings.Join(shells(), "|"), "there is no completion for %s", config.Visible(shell))
	}
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(f.IO.Out, true)
	case "zsh":
		return root.GenZshCompletion(f.IO.Out)
	case "fish":
		return root.GenFishCompletion(f.IO.Out, true)
	}
	return root.GenPowerShellCompletionWithDesc(f.IO.Out)
}
