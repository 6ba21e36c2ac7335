package store

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/person"
)

type tokenScriptOptions struct {
	f      *cmdutil.Factory
	remove bool
}

func newCmdTokenScript(f *cmdutil.Factory, runF func(context.Context, *tokenScriptOptions) error) *cobra.Command {
	o := &tokenScriptOptions{f: f}
	if runF == nil {
		runF = tokenScriptRun
	}
	c := &cobra.Command{
		Use: "script", Short: "Create the token that lets scripts relax restrictions", Args: cmdutil.ExactArgs(0),
		Long: `Relaxing a restriction requires a user: accepting pins, allowing tools, approving
projects, adding servers, setting secrets, minting tokens and the like. usher takes
input at a terminal or in the console as the user's. It refuses a coding agent, even
at a terminal.

A script without a terminal needs the script token in USHER_SCRIPT_TOKEN. This command
creates it and shows it once; usher stores its hash in the file script-token next to
your mcp.json. There is one at a time. Give it only to that script: if every shell has
it, every agent has it. In a CI pipeline, write that file from the pipeline's own
secret, as in the example.`,
		Example: `  usher token script
  USHER_SCRIPT_TOKEN=… usher approve --all --yes
  usher token script --remove
  printf %s "$USHER_SCRIPT_TOKEN" | sha256sum > ~/.config/usher/script-token`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.remove, "remove", false, "make the token invalid")
	return c
}

func tokenScriptRun(_ context.Context, o *tokenScriptOptions) error {
	f, remove := o.f, o.remove
	dirs, err := config.FindDirs(f.IO.System)
	if err != nil {
		return err
	}
	if remove {
		found, err := person.RemoveToken(dirs.Config)
		if err != nil {
			return err
		}
		if !found {
			f.Note("there is no script token")
			return nil
		}
		f.Note("the script token is not valid any more")
		return nil
	}
	token, err := person.NewToken(dirs.Config)
	if err != nil {
		return err
	}
	f.Note("%s for scripts; it is shown only once; usher stores a hash:", person.TokenVariable)
	_, err = fmt.Fprintln(f.IO.Out, token)
	return err
}
