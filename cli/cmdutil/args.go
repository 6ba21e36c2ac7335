package cmdutil

import (
	"strings"

	"github.com/spf13/cobra"
)

// NoSubcommand explains a subcommand that does not exist.
func NoSubcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Usagef(c.CommandPath()+" --help", "unknown command %q for %s", args[0], c.CommandPath())
}

// NoCommand explains an unknown command with the nearest ones.
func NoCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "usher --help"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean: usher " + strings.Join(near, ", usher ")
	}
	return Usagef(hint, "unknown command %q", args[0])
}

// ExactArgs is cobra.ExactArgs with an error that shows how to call the command.
func ExactArgs(n int) cobra.PositionalArgs { return RangeArgs(n, n) }

// RangeArgs is cobra.RangeArgs with an error that shows how to call the command.
func RangeArgs(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usagef(c.UseLine(), "%s needs %s", c.CommandPath(), missing(c, len(args)))
		case most >= 0 && len(args) > most:
			return Usagef(c.UseLine(), "%s does not take %q", c.CommandPath(), args[most])
		}
		return nil
	}
}

// missing names the first argument that was not given, as the usage line calls it.
func missing(c *cobra.Command, given int) string {
	words := strings.Fields(c.Use)
	if given+1 < len(words) {
		return strings.Trim(words[given+1], "[]…")
	}
	return "more arguments"
}
