package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/advice"
)

type discoverOptions struct {
	f       *cmdutil.Factory
	timeout time.Duration
	tags    []string
	json    bool
}

func newCmdDiscover(f *cmdutil.Factory, runF func(context.Context, *discoverOptions) error) *cobra.Command {
	o := &discoverOptions{f: f}
	if runF == nil {
		runF = discoverRun
	}
	c := &cobra.Command{
		Use: "discover", Short: "Fetch tools from all servers", GroupID: "use", Args: cmdutil.ExactArgs(0),
		Long: `Connect to all servers at once and print their tools as they arrive, one line per
tool, or one line with the reason why a server failed. No server waits for another.
The tools are cached: usher search and usher tools then need no connection.

Exit codes: 0 all succeeded, 1 some failed, 10 some require a login or an approval.`,
		Example: `  usher discover
  usher discover --timeout 10s
  usher discover --tag work
  usher discover --json | jq -r 'select(.error) | .server'`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "per-server timeout, e.g. 10s (default: each server's own timeouts)")
	cmdutil.TagFlag(f, c, &o.tags)
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object per line")
	return c
}

// discovered is one line with --json.
type discovered struct {
	Server string          `json:"server"`
	Tool   string          `json:"tool,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Stale  bool            `json:"stale,omitempty"`
	// SchemaChanged: it differs from its pin. Blocked: so it cannot be called.
	SchemaChanged bool   `json:"schema_changed,omitempty"`
	Blocked       bool   `json:"blocked,omitempty"`
	Error         string `json:"error,omitempty"`
}

func discoverRun(ctx context.Context, o *discoverOptions) error {
	f := o.f
	if o.timeout < 0 {
		return cmdutil.Usagef("write it like 10s", "--timeout must not be negative")
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	var names []string
	if len(o.tags) > 0 {
		if names, err = cmdutil.Tagged(h.Config(), o.tags, cmdutil.AnyServer); err != nil {
			return err
		}
	}
	asking := ctx
	if o.timeout > 0 {
		var stop context.CancelFunc
		asking, stop = context.WithTimeout(ctx, o.timeout)
		defer stop()
	}
	t := tally{tools: map[string]int{}}
	wide := nameColumn(h.Config())
	for row := range h.Catalog().Discover(asking, names...) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(row.Err, context.DeadlineExceeded) && asking.Err() != nil {
			row.Err = fmt.Errorf("no answer within %s", o.timeout)
		}
		t.add(row)
		if err := printRow(f, row, wide, o.json); err != nil {
			return err
		}
	}
	for _, entry := range brokenServers(h.Config(), names) {
		t.add(entry)
		if err := printRow(f, entry, wide, o.json); err != nil {
			return err
		}
	}
	f.Note("%s", t)
	return t.err()
}

// brokenServers are those that cannot be asked at all, of all or of those named.
func brokenServers(cfg *config.Config, names []string) []host.Row {
	var out []host.Row
	for _, s := range cfg.Servers {
		if s.Problem != nil && (len(names) == 0 || slices.Contains(names, s.Name)) {
			out = append(out, host.Row{Server: s.Name, Err: fmt.Errorf("broken: %w", s.Problem)})
		}
	}
	return out
}

// nameColumn is how wide names get, known before the first one comes.
func nameColumn(cfg *config.Config) int {
	wide := 0
	for _, s := range cfg.Servers {
		wide = max(wide, min(cmdutil.TextWidth(config.Unquoted(s.Name)), cmdutil.MaxNameColumn))
	}
	return wide
}

// toolColumn is how wide the column of tools is, since those to come are unknown.
const toolColumn = 28

func printRow(f *cmdutil.Factory, row host.Row, wide int, asJSON bool) error {
	name := row.Server
	if row.Account != "" {
		name += "@" + row.Account
	}
	if f.Agent() != "" && cmdutil.NeutralText(row.Err) != "" {
		row.Err = errors.New(cmdutil.ExplainLine(f, row.Err))
	}
	if asJSON {
		out := discovered{Server: name, Tool: row.Tool, Schema: row.Schema, Stale: row.Stale, SchemaChanged: row.SchemaChanged, Blocked: row.Blocked}
		if row.Err != nil {
			out.Error = advice.Message(row.Err)
		}
		return f.PrintJSONLine(out)
	}
	name = config.Unquoted(name)
	line := name + pad(wide-cmdutil.TextWidth(name)) + "  "
	switch tool := cmdutil.CleanLine(row.Tool); {
	case row.Err != nil:
		line += bad(f) + cmdutil.CleanLine(cmdutil.PlainCause(row.Server, row.Err))
		if next := cmdutil.NextStep(row.Err, ""); next != "" {
			line += "; " + cmdutil.CleanLine(next)
		}
	case row.SchemaChanged:
		line += tool + pad(toolColumn-cmdutil.TextWidth(tool)) + "  (changed) " + cmdutil.FirstLine(cmdutil.ToolSummary(row.Schema), 200)
	case row.Stale:
		line += tool + pad(toolColumn-cmdutil.TextWidth(tool)) + "  (last known) " + cmdutil.FirstLine(cmdutil.ToolSummary(row.Schema), 200)
	default:
		line += tool + pad(toolColumn-cmdutil.TextWidth(tool)) + "  " + cmdutil.FirstLine(cmdutil.ToolSummary(row.Schema), 200)
	}
	if w := f.TableWidth(); w > 0 && row.Err == nil {
		line = cmdutil.Truncate(line, w)
	}
	_, err := fmt.Fprintln(f.IO.Out, strings.TrimRight(line, " "))
	return err
}

// bad marks a failure: a symbol and a word on a terminal, the word elsewhere.
func bad(f *cmdutil.Factory) string {
	if f.IO.OutTTY {
		return "✖ error: "
	}
	return "error: "
}

// tally counts what was discovered.
type tally struct {
	tools   map[string]int // by server
	failed  []string
	waiting []string // for a person
}

func (t *tally) add(row host.Row) {
	switch {
	case row.Err == nil && !row.Stale:
		t.tools[row.Server]++
	case row.Err == nil:
	case cmdutil.ExitCode(row.Err) == cmdutil.ExitWaiting:
		t.waiting = append(t.waiting, row.Server)
	default:
		t.failed = append(t.failed, row.Server)
	}
}

func (t tally) String() string {
	n := 0
	for _, tools := range t.tools {
		n += tools
	}
	out := fmt.Sprintf("%s from %s", cmdutil.CountOf(n, "tool", "tools"), cmdutil.CountOf(len(t.tools), "server", "servers"))
	if len(t.waiting) > 0 {
		out += fmt.Sprintf("; %d wait for you: %s", len(t.waiting), listNames(t.waiting))
	}
	if len(t.failed) > 0 {
		out += fmt.Sprintf("; %d failed: %s", len(t.failed), listNames(t.failed))
	}
	return out
}

func listNames(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (t tally) err() error {
	switch {
	case len(t.failed) > 0:
		return &cmdutil.SilentError{Code: cmdutil.ExitError}
	case len(t.waiting) > 0:
		return &cmdutil.SilentError{Code: cmdutil.ExitWaiting}
	}
	return nil
}
