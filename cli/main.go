package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command that args name and returns its exit code, with which the
// process is to end at once.
func Main(args []string, w IO) int {
	ctx, end := context.WithCancelCause(context.Background())
	hangup := make(chan os.Signal, 1)
	w.Hangup, w.nohup = hangup, signal.Ignored(syscall.SIGHUP)
	w.exits, w.pid = true, os.Getpid()
	// Beside the command, which need not wait for it: a signal that comes before ends
	// the process, as it should.
	go func() {
		signal.Notify(hangup, syscall.SIGHUP)
		stopped, _ := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		<-stopped.Done()
		end(context.Cause(stopped))
	}()
	return Run(ctx, args, w)
}

// Run is Main without signals, for tests and embedding programs.
func Run(ctx context.Context, args []string, w IO) int {
	ctx, end := context.WithCancel(ctx)
	defer end()
	a := &factory{io: w}
	defer a.close()
	go a.whileHungUp(ctx, end)
	root := rootFor(a, args)
	root.SetArgs(courierWords(root, args))
	err := root.ExecuteContext(ctx)
	a.report(err)
	return exitCode(err)
}

// whileHungUp ends the command when its terminal is gone, unless the command has
// another use for that signal, or nohup was to keep it from that.
func (a *factory) whileHungUp(ctx context.Context, end context.CancelFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.io.Hangup:
		}
		if do := a.onHangup.Load(); do != nil {
			(*do)()
		} else if !a.io.nohup {
			end()
		}
	}
}

// rootFor is newRoot with what args need of it: what scripts run over and over does not
// wait for forty other commands to be made.
func rootFor(a *factory, args []string) *cobra.Command {
	if len(args) == 0 || args[0] != "call" {
		return newRoot(a)
	}
	root := bareRoot(a)
	root.AddCommand(newCmdCall(a))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// newRoot is the command with all its subcommands.
func newRoot(a *factory) *cobra.Command {
	root := bareRoot(a)
	a.commands(root)
	explainPerson(root)
	return root
}

func bareRoot(a *factory) *cobra.Command {
	root := &cobra.Command{
		Use:   "usher",
		Short: "One host for all your MCP servers",
		Long: `usher stands between agents (or you) and many MCP servers: it logs them in,
keeps them healthy, guards what may be called, and shows them as one.`,
		Example: `  usher init                          import servers, log in, point your agents at usher
  usher add docs https://example.com/mcp
  usher tools docs
  usher call docs search query="hello"`,
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2,
		Args:                       noCommand,
		PersistentPreRunE:          a.requirePerson,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.Version = Version().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(a.io.In)
	root.SetOut(a.io.Out)
	root.SetErr(a.io.Err)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef(c.CommandPath()+" --help", "%v", err)
	})
	root.AddGroup(
		&cobra.Group{ID: "use", Title: "Use servers:"},
		&cobra.Group{ID: "run", Title: "Look after servers:"},
		&cobra.Group{ID: "config", Title: "Configure:"},
	)
	flags := root.PersistentFlags()
	flags.StringVar(&a.configFile, "config", "", "use this `file` instead of the user and project files")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say more about what happens and why")
	return root
}

// noCommand explains an unknown command with the nearest ones.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "usher --help"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean: usher " + strings.Join(near, ", usher ")
	}
	return usagef(hint, "there is no command %q", args[0])
}

// exactly is cobra.ExactArgs with an error that shows how to call the command.
func exactly(n int) cobra.PositionalArgs { return between(n, n) }

// between is cobra.RangeArgs with an error that shows how to call the command.
func between(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef(c.UseLine(), "%s needs %s", c.CommandPath(), missing(c, len(args)))
		case most >= 0 && len(args) > most:
			return usagef(c.UseLine(), "%s does not take %q", c.CommandPath(), args[most])
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

var errNoTerminal = errors.New("a question must be answered and there is no terminal")
