package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/vault/audit"
)

func newCmdAudit(f *cmdutil.Factory) *cobra.Command {
	c := &cobra.Command{
		Use: "audit", Short: "View and verify the audit log", GroupID: "run", Args: cmdutil.NoSubcommand,
		Long: `The audit log records every tool call and every use of a prompt or resource: the
principal, the server and tool, a hash of the arguments, the outcome and the duration.
It does not store arguments and results. Each usher process writes a chain of blocks;
each block contains the hash of the previous one.

usher writes the log once a second. A process that is killed loses at most its last
second; a power failure may cost a few more. During a long outage of the store, records
beyond the in-memory limit are dropped, and the log says how many.
"audit": {"enabled": false} under "usher" switches the log off.`,
		Example: `  usher audit tail --follow
  usher audit verify
  usher audit export --since 24h > yesterday.ndjson`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdAuditTail(f, nil), newCmdAuditVerify(f, nil), newCmdAuditExport(f, nil))
	return c
}

// auditFilter selects acts; empty fields select all.
type auditFilter struct {
	server, principal, outcome string
	since                      time.Duration
}

func (filter *auditFilter) flags(c *cobra.Command, f *cmdutil.Factory) {
	c.Flags().StringVar(&filter.server, "server", "", "only this `server`")
	c.Flags().StringVar(&filter.principal, "principal", "", "only calls of this `principal`")
	c.Flags().StringVar(&filter.outcome, "outcome", "", "only calls with this outcome: ok, tool_error, denied, …")
	_ = c.RegisterFlagCompletionFunc("server", cmdutil.CompleteServers(f, -1)) // fails for an unknown flag only
}

func (f *auditFilter) wants(x *audit.Record) bool {
	return (f.server == "" || f.server == x.Server || f.server == x.Server+"@"+x.Account) &&
		(f.principal == "" || f.principal == x.Principal) && (f.outcome == "" || f.outcome == x.Outcome) &&
		(f.since <= 0 || time.Since(x.At) <= f.since)
}

type auditTailOptions struct {
	f *cmdutil.Factory
	auditFilter
	lines        int
	follow, json bool
}

func newCmdAuditTail(f *cmdutil.Factory, runF func(context.Context, *auditTailOptions) error) *cobra.Command {
	o := &auditTailOptions{f: f}
	if runF == nil {
		runF = auditTailRun
	}
	c := &cobra.Command{
		Use: "tail", Short: "Show the newest calls", Args: cmdutil.ExactArgs(0),
		Example: "  usher audit tail\n  usher audit tail --follow --server github\n  usher audit tail -n 100 --outcome denied --json",
		RunE:    func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	o.flags(c, f)
	c.Flags().IntVarP(&o.lines, "lines", "n", 20, "how many")
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "print new calls as they are recorded")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON, one value per line")
	return c
}

func auditTailRun(ctx context.Context, o *auditTailOptions) error {
	f := o.f
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	acts, after, err := lastActs(ctx, h, o)
	if err != nil {
		return err
	}
	if len(acts) == 0 && !o.follow {
		f.Note("the audit log has no calls%s", map[bool]string{true: " that match", false: ""}[o.auditFilter != auditFilter{}])
	}
	for {
		for _, x := range acts {
			if err := showAct(f, x, o.json); err != nil {
				return err
			}
		}
		if !o.follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		if acts, after, err = newActs(ctx, h, o.auditFilter, after); err != nil {
			return err
		}
	}
}

// lastActs are the newest acts that fit, and the number of the entry they end with.
func lastActs(ctx context.Context, h *app.App, o *auditTailOptions) (acts []audit.Record, after int64, err error) {
	var blocks []audit.Block
	if o.auditFilter == (auditFilter{}) {
		blocks, err = h.Audit().Last(ctx, o.lines)
	} else {
		for b, e := range h.Audit().All(ctx, 0) {
			if err = e; err != nil {
				break
			}
			blocks = append(blocks, b)
		}
	}
	if err != nil {
		return nil, 0, err
	}
	acts, after = fitting(blocks, o.auditFilter, 0)
	return acts[max(0, len(acts)-max(o.lines, 0)):], after, nil
}

func newActs(ctx context.Context, h *app.App, f auditFilter, after int64) ([]audit.Record, int64, error) {
	var blocks []audit.Block
	for b, err := range h.Audit().All(ctx, after) {
		if err != nil {
			return nil, after, err
		}
		blocks = append(blocks, b)
	}
	acts, after := fitting(blocks, f, after)
	return acts, after, nil
}

func fitting(blocks []audit.Block, f auditFilter, after int64) ([]audit.Record, int64) {
	var acts []audit.Record
	for _, b := range blocks {
		after = max(after, b.Seq)
		for _, x := range b.Records {
			if f.wants(&x) {
				acts = append(acts, x)
			}
		}
	}
	return acts, after
}

func showAct(f *cmdutil.Factory, x audit.Record, asJSON bool) error {
	if asJSON {
		return f.PrintJSONLine(x)
	}
	server := x.Server
	if x.Account != "" {
		server += "@" + x.Account
	}
	_, err := fmt.Fprintf(f.IO.Out, "%s  %-12s %s %s  %s  %s\n", x.At.Local().Format(time.DateTime), x.Outcome,
		cmdutil.CleanLine(server), cmdutil.CleanLine(strings.TrimSpace(x.Target)), x.Took.Round(time.Microsecond), cmdutil.CleanLine(x.Principal))
	return err
}

type auditExportOptions struct {
	f      *cmdutil.Factory
	filter auditFilter
}

func newCmdAuditExport(f *cmdutil.Factory, runF func(context.Context, *auditExportOptions) error) *cobra.Command {
	o := &auditExportOptions{f: f}
	if runF == nil {
		runF = auditExportRun
	}
	c := &cobra.Command{
		Use: "export", Short: "Print the audit log, one JSON value per line", Args: cmdutil.ExactArgs(0),
		Long: `Print the audit log from its beginning, one call per line, with its chain and block.
A block that fails verification is reported and left out.`,
		Example: "  usher audit export > audit.ndjson\n  usher audit export --since 168h --principal ci",
		RunE:    func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	o.filter.flags(c, f)
	c.Flags().DurationVar(&o.filter.since, "since", 0, "only the last `time`, such as 24h")
	return c
}

// exportedAct is an act and where it stands in the trail.
type exportedAct struct {
	audit.Record
	writer string
	block  int64
}

func (x exportedAct) MarshalJSON() ([]byte, error) {
	text, err := x.Record.MarshalJSON()
	if err != nil {
		return nil, err
	}
	place, err := json.Marshal(struct {
		Writer string `json:"writer"`
		Block  int64  `json:"block"`
	}{x.writer, x.block})
	return append(append(text[:len(text)-1], ','), place[1:]...), err
}

func auditExportRun(ctx context.Context, o *auditExportOptions) error {
	f, filter := o.f, o.filter
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	last := map[string]int64{} // a block may have been written twice
	bad := 0
	for b, err := range h.Audit().All(ctx, 0) {
		if err != nil {
			return err
		}
		if b.Problem != nil {
			bad++
			f.Note("left out: %v", b.Problem)
			continue
		}
		if b.Number <= last[b.Writer] {
			continue
		}
		last[b.Writer] = b.Number
		for _, x := range b.Records {
			if filter.wants(&x) {
				if err := f.PrintJSONLine(exportedAct{x, b.Writer, b.Number}); err != nil {
					return err
				}
			}
		}
	}
	if bad > 0 {
		return cmdutil.WithHint(fmt.Errorf("%s could not be trusted", cmdutil.Count(bad, "block")), "usher audit verify")
	}
	return nil
}

// readHeads reads what an earlier `usher audit verify --json` printed.
func readHeads(file string) ([]audit.Head, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var earlier struct {
		Chains []audit.Head `json:"chains"`
	}
	if err := json.Unmarshal(text, &earlier); err != nil {
		return nil, cmdutil.WithHint(fmt.Errorf("%s is not what usher audit verify --json prints: %w", file, err), "usher audit verify --json > %s", file)
	}
	return earlier.Chains, nil
}
