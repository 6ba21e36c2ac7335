package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

type logsOptions struct {
	server string
	follow bool
	lines  int
	pid    int
	json   bool
}

func newCmdLogs(a *factory) *cobra.Command {
	var o logsOptions
	c := &cobra.Command{
		Use: "logs SERVER", Short: "Show what a server wrote to its standard error", GroupID: "run", Args: exactly(1),
		Long: `Show what a server wrote to its standard error: live from the ushers that run it,
otherwise the last words of its last run.`,
		Example: `  usher logs github
  usher logs github -n 20
  usher logs github --follow`,
		ValidArgsFunction: a.completeServers(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.server = args[0]
			return a.logs(c.Context(), o)
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on as more is written, until Ctrl-C")
	f.IntVarP(&o.lines, "lines", "n", 0, "show only the last `N` lines")
	f.IntVar(&o.pid, "pid", 0, "only from the usher with this process `id`")
	f.BoolVar(&o.json, "json", false, "print one JSON object per line")
	return c
}

// logLine is one line with --json.
type logLine struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
	PID  int       `json:"pid,omitempty"` // of the usher that runs the server, when several do
}

func (a *factory) logs(ctx context.Context, o logsOptions) error {
	if o.lines < 0 {
		return usagef("usher logs SERVER -n 20", "-n must not be negative")
	}
	peers, err := a.running(ctx, o.pid)
	if err != nil {
		return err
	}
	shown, err := a.liveLogs(ctx, peers, o)
	if shown || err != nil || o.pid != 0 {
		return err
	}
	return a.savedLogs(ctx, o)
}

// savedLogs shows the last words of an earlier run.
func (a *factory) savedLogs(ctx context.Context, o logsOptions) error {
	h, err := a.open(ctx)
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
		a.note("no running usher hosts %s; these are its last words", o.server)
	}
	if len(all) == 0 {
		a.note("%s wrote nothing to standard error in its last run", o.server)
	}
	return a.printLogs(lastLines(all, o.lines), o.json)
}

func lastLines(all []logLine, n int) []logLine {
	if n > 0 && len(all) > n {
		return all[len(all)-n:]
	}
	return all
}

func (a *factory) printLogs(all []logLine, asJSON bool) error {
	for _, l := range all {
		if err := a.printLog(l, asJSON); err != nil {
			return err
		}
	}
	return nil
}

func (a *factory) printLog(l logLine, asJSON bool) error {
	if asJSON {
		return a.printJSONLine(l)
	}
	from := ""
	if l.PID != 0 {
		from = fmt.Sprintf("[%d] ", l.PID)
	}
	_, err := fmt.Fprintf(a.io.Out, "%s  %s%s\n", l.Time.Local().Format(time.TimeOnly), from, clean(l.Text))
	return err
}
