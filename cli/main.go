package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/cli/login"
	"github.com/usher-mcp/usher/cli/run"
)

// Main runs the command that args name and returns its exit code, with which the
// process is to end at once.
func Main(args []string, w cmdutil.IO) int {
	ctx, end := context.WithCancelCause(context.Background())
	hangup := make(chan os.Signal, 1)
	w.Hangup, w.Nohup = hangup, signal.Ignored(syscall.SIGHUP)
	w.Exits, w.PID = true, os.Getpid()
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
func Run(ctx context.Context, args []string, w cmdutil.IO) int {
	ctx, end := context.WithCancel(ctx)
	defer end()
	f := &cmdutil.Factory{IO: w}
	defer f.Close()
	go whileHungUp(ctx, f, end)
	root := rootFor(f, args)
	root.SetArgs(login.CourierWords(root, args))
	err := root.ExecuteContext(ctx)
	f.Report(err)
	return cmdutil.ExitCode(err)
}

// whileHungUp ends the command when its terminal is gone, unless the command has
// another use for that signal, or nohup was to keep it from that.
func whileHungUp(ctx context.Context, f *cmdutil.Factory, end context.CancelFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.IO.Hangup:
		}
		if do := f.OnHangup.Load(); do != nil {
			(*do)()
		} else if !f.IO.Nohup {
			end()
		}
	}
}

// rootFor is newRoot with what args need of it: what scripts run over and over does not
// wait for forty other commands to be made.
func rootFor(f *cmdutil.Factory, args []string) *cobra.Command {
	if len(args) == 0 || args[0] != "call" {
		return newRoot(f)
	}
	root := bareRoot(f)
	root.AddCommand(run.Call(f))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// newRoot is the command with all its subcommands.
func newRoot(f *cmdutil.Factory) *cobra.Command {
	root := bareRoot(f)
	commands(f, root)
	explainPerson(root)
	return root
}

func bareRoot(f *cmdutil.Factory) *cobra.Command {
	root := &cobra.Command{
		Use:   "usher",
		Short: "A gateway for MCP servers",
		Long: `usher is a gateway for MCP servers: it logs in to them, keeps them running, enforces
policy, and exposes them to agents as one.`,
		Example: `  usher init                          import servers, log in, point your agents at usher
  usher add docs https://example.com/mcp
  usher tools docs
  usher call docs search query="hello"`,
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2,
		Args:                       cmdutil.NoCommand,
		PersistentPreRunE:          func(c *cobra.Command, p1 []string) error { return requirePerson(f, c, p1) },
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.Version = cmdutil.Version().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(f.IO.In)
	root.SetOut(f.IO.Out)
	root.SetErr(f.IO.Err)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return cmdutil.Usagef(c.CommandPath()+" --help", "%v", err)
	})
	root.AddGroup(
		&cobra.Group{ID: "use", Title: "Use:"},
		&cobra.Group{ID: "run", Title: "Operate:"},
		&cobra.Group{ID: "config", Title: "Configure:"},
	)
	flags := root.PersistentFlags()
	flags.StringVar(&f.ConfigFile, "config", "", "use this `file` instead of the user and project files")
	flags.BoolVarP(&f.Verbose, "verbose", "v", false, "verbose output")
	return root
}
