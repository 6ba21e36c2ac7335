package run

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

type logsOptions struct {
	f      *cmdutil.Factory
	server string
	follow bool
	lines  int
	pid    int
	json   bool
}

func newCmdLogs(f *cmdutil.Factory, runF func(context.Context, *logsOptions) error) *cobra.Command {
	o := &logsOptions{f: f}
	if runF == nil {
		runF = logsRun
	}
	c := &cobra.Command{
		Use: "logs SERVER", Short: "Show what a server wrote to its standard error", GroupID: "run", Args: cmdutil.ExactArgs(1),
		Long: `Show what a server wrote to stderr: live from the usher processes that run it,
otherwise the last output of its last run.`,
		Example: `  usher logs github
  usher logs github -n 20
  usher logs github --follow`,
		ValidArgsFunction: cmdutil.CompleteServers(f, 1),
		RunE: func(c *cobra.Command, args []string) error {
			o.server = args[0]
			return runF(c.Context(), o)
		},
	}
	flags := c.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "stream new lines until Ctrl-C")
	flags.IntVarP(&o.lines, "lines", "n", 0, "show only the last `N` lines")
	flags.IntVar(&o.pid, "pid", 0, "only from the usher process with this `id`")
	flags.BoolVar(&o.json, "json", false, "print one JSON object per line")
	return c
}

// logLine is one line with --json.
type logLine struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
	PID  int       `json:"pid,omitempty"` // of the usher that runs the server, when several do
}

func logsRun(ctx context.Context, o *logsOptions) error {
	f := o.f
	if o.lines < 0 {
		return cmdutil.Usagef("usher logs SERVER -n 20", "-n must not be negative")
	}
	peers, err := cmdutil.Running(ctx, f, o.pid)
	if err != nil {
		return err
	}
	shown, err := liveLogs(ctx, f, peers, o)
	if shown || err != nil || o.pid != 0 {
		return err
	}
	return savedLogs(ctx, f, o)
}

// savedLogs shows the last words of an earlier run.
func savedLogs(ctx context.Context, f *cmdutil.Factory, o *logsOptions) error {
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	lines, err := h.Servers().Logs(ctx, o.server, false)
	if err != nil {
		return err
	}
	var all []logLine
	for l := range lines {
		all = append(all, logLine{Time: l.Time, Text: l.Text})
	}
	if o.follow {
		f.Note("no usher process runs %s; this is its last output", o.server)
	}
	if len(all) == 0 {
		f.Note("%s wrote nothing to standard error in its last run", o.server)
	}
	return printLogs(f, lastLines(all, o.lines), o.json)
}

func lastLines(all []logLine, n int) []logLine {
	if n > 0 && len(all) > n {
		return all[len(all)-n:]
	}
	return all
}

func printLogs(f *cmdutil.Factory, all []logLine, asJSON bool) error {
	for _, l := range all {
		if err := printLog(f, l, asJSON); err != nil {
			return err
		}
	}
	return nil
}

func printLog(f *cmdutil.Factory, l logLine, asJSON bool) error {
	if asJSON {
		return f.PrintJSONLine(l)
	}
	from := ""
	if l.PID != 0 {
		from = fmt.Sprintf("[%d] ", l.PID)
	}
	_, err := fmt.Fprintf(f.IO.Out, "%s  %s%s\n", l.Time.Local().Format(time.TimeOnly), from, cmdutil.Clean(l.Text))
	return err
}
