package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
)

type doctorOptions struct {
	f       *cmdutil.Factory
	names   []string
	timeout time.Duration
	json    bool
}

func newCmdDoctor(f *cmdutil.Factory, runF func(context.Context, *doctorOptions) error) *cobra.Command {
	o := &doctorOptions{f: f}
	if runF == nil {
		runF = doctorRun
	}
	c := &cobra.Command{
		Use: "doctor [NAME…]", Short: "Diagnose problems", GroupID: "run", Args: cmdutil.RangeArgs(0, -1),
		Long: `Check everything a server needs, in order: its definition, your approval, the rules,
its command or URL, the connection, its tools and their pins, and its state in
running usher processes. doctor starts the servers and connects to them.

Exit codes: 0 no problems, 1 a problem was found, 10 a login or an approval is
required.`,
		Example: `  usher doctor
  usher doctor github
  usher doctor --json | jq '.servers[].checks[] | select(.status != "ok")'`,
		ValidArgsFunction: cmdutil.CompleteServers(f, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.names = args
			return runF(c.Context(), o)
		},
	}
	c.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "how long each server may take; 0 leaves it to its own timeouts")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// How a check ended. The words are part of the output.
const (
	checkOK      = "ok"
	checkProblem = "problem"
	checkWaiting = "waiting" // for a person: a login, an approval
	checkNote    = "note"    // nothing is wrong, and yet good to know
)

// check is one step of a diagnosis.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"` // what to do
}

// diagnosis is all that was looked at about one thing.
type diagnosis struct {
	Name    string  `json:"name"`
	Address string  `json:"address,omitempty"`
	Checks  []check `json:"checks"`
}

func (d *diagnosis) add(status, name, next, format string, args ...any) {
	d.Checks = append(d.Checks, check{name, status, fmt.Sprintf(format, args...), next})
}

func (d *diagnosis) has(status string) bool {
	return slices.ContainsFunc(d.Checks, func(c check) bool { return c.Status == status })
}

func doctorRun(ctx context.Context, o *doctorOptions) error {
	f := o.f
	if o.timeout < 0 {
		return cmdutil.Usagef("write it like 10s", "--timeout must not be negative")
	}
	cfg, err := config.Load(f.LoadOptions())
	if err != nil && len(cfg.Files) == 0 {
		return err
	}
	if err := cmdutil.KnownServers(cfg, o.names); err != nil {
		return err
	}
	f.Cfg = cfg // what is wrong with it is part of the diagnosis
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	x := &examiner{factory: f, host: h, timeout: o.timeout}
	var self diagnosis
	self, x.reports = examineSelf(ctx, f, cfg)
	show := len(o.names) == 0
	all := []diagnosis{}
	if !o.json && show {
		showDiagnosis(f, f.IO.Out, self)
	}
	for _, ready := range x.start(ctx, cfg, o.names) {
		d := <-ready
		all = append(all, d)
		if !o.json && ctx.Err() == nil {
			showDiagnosis(f, f.IO.Out, d)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.json {
		if err := f.PrintJSON(map[string]any{"usher": self.Checks, "servers": all}); err != nil {
			return err
		}
	}
	if show {
		all = append(all, self)
	}
	return verdictOf(all)
}

func verdictOf(all []diagnosis) error {
	switch {
	case slices.ContainsFunc(all, func(d diagnosis) bool { return d.has(checkProblem) }):
		return &cmdutil.SilentError{Code: cmdutil.ExitError}
	case slices.ContainsFunc(all, func(d diagnosis) bool { return d.has(checkWaiting) }):
		return &cmdutil.SilentError{Code: cmdutil.ExitWaiting}
	}
	return nil
}

// checkColumn is how wide the names of checks are.
const checkColumn = 13

func showDiagnosis(f *cmdutil.Factory, w io.Writer, d diagnosis) {
	fmt.Fprintln(w, strings.TrimRight(config.Unquoted(d.Name)+"  "+cmdutil.Clean(d.Address), " "))
	for _, c := range d.Checks {
		mark := fmt.Sprintf("%-8s", c.Status)
		if f.IO.OutTTY {
			mark = checkSymbol(c.Status) + " " + mark
		}
		detail := strings.ReplaceAll(cmdutil.Clean(c.Detail), "\n", "\n    ")
		fmt.Fprintf(w, "  %s %-*s  %s\n", mark, checkColumn, c.Name, detail)
		if c.Next != "" {
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(cmdutil.Clean(c.Next), "\n", "\n    "))
		}
	}
}

func checkSymbol(status string) string {
	switch status {
	case checkOK:
		return "✔"
	case checkProblem:
		return "✖"
	case checkWaiting:
		return "…"
	}
	return "–"
}
