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
	json   bool
}

func newCmdLogs(a *app) *cobra.Command {
	var o logsOptions
	c := &cobra.Command{
		Use: "logs SERVER", Short: "Show what a server wrote to its standard error", GroupID: "use", Args: exactly(1),
		Long: `Show what a server wrote to its standard error: live from the usher that runs it,
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
	f.BoolVar(&o.json, "json", false, "print one JSON object per line")
	return c
}

// logLine is one line with --json.
type logLine struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

func (a *app) logs(ctx context.Context, o logsOptions) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	lines, err := h.Logs(ctx, o.server, o.follow)
	if err != nil {
		return err
	}
	var all []logLine
	for l := range lines {
		line := logLine{l.Time, l.Text}
		if o.follow {
			if err := a.printLog(line, o.json); err != nil {
				return err
			}
			continue
		}
		all = append(all, line)
	}
	if o.lines > 0 && len(all) > o.lines {
		all = all[len(all)-o.lines:]
	}
	if len(all) == 0 && !o.follow {
		a.note("%s wrote nothing to standard error in its last run", o.server)
	}
	for _, line := range all {
		if err := a.printLog(line, o.json); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printLog(l logLine, asJSON bool) error {
	if asJSON {
		return a.printJSONLine(l)
	}
	_, err := fmt.Fprintf(a.io.Out, "%s  %s\n", l.Time.Local().Format(time.TimeOnly), clean(l.Text))
	return err
}
