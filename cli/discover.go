package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
)

type discoverOptions struct {
	timeout time.Duration
	tags    []string
	json    bool
}

func newCmdDiscover(a *factory) *cobra.Command {
	var o discoverOptions
	c := &cobra.Command{
		Use: "discover", Short: "Ask all servers for their tools at once", GroupID: "use", Args: exactly(0),
		Long: `Connect to all servers at once and list their tools as they come: one line a tool,
or one with the reason why a server has none to show. No server waits for another.
What was found is kept: usher search and usher tools need no connection then.

Exit codes: 0 all answered, 1 some failed, 10 some need a login or an approval.`,
		Example: `  usher discover
  usher discover --timeout 10s
  usher discover --tag work
  usher discover --json | jq -r 'select(.error) | .server'`,
		RunE: func(c *cobra.Command, _ []string) error { return a.discover(c.Context(), o) },
	}
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "give up on those that have not answered by then, e.g. 10s (default: each server's own timeouts)")
	a.tagFlag(c, &o.tags)
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object a line")
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

func (a *factory) discover(ctx context.Context, o discoverOptions) error {
	if o.timeout < 0 {
		return usagef("write it like 10s", "--timeout must not be negative")
	}
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	var names []string
	if len(o.tags) > 0 {
		if names, err = tagged(h.Config(), o.tags, anyServer); err != nil {
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
		if err := a.printRow(row, wide, o.json); err != nil {
			return err
		}
	}
	for _, f := range brokenServers(h.Config(), names) {
		t.add(f)
		if err := a.printRow(f, wide, o.json); err != nil {
			return err
		}
	}
	a.note("%s", t)
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
		wide = max(wide, min(columns(config.Unquoted(s.Name)), maxNameColumn))
	}
	return wide
}

// toolColumn is how wide the column of tools is, since those to come are unknown.
const toolColumn = 28

func (a *factory) printRow(row host.Row, wide int, asJSON bool) error {
	name := row.Server
	if row.Account != "" {
		name += "@" + row.Account
	}
	if a.agent() != "" && neutralText(row.Err) != "" {
		row.Err = errors.New(a.explained(row.Err))
	}
	if asJSON {
		out := discovered{Server: name, Tool: row.Tool, Schema: row.Schema, Stale: row.Stale, SchemaChanged: row.SchemaChanged, Blocked: row.Blocked}
		if row.Err != nil {
			out.Error = row.Err.Error()
		}
		return a.printJSONLine(out)
	}
	name = config.Unquoted(name)
	line := name + pad(wide-columns(name)) + "  "
	switch tool := cleanLine(row.Tool); {
	case row.Err != nil:
		line += a.bad() + cleanLine(plainCause(row.Server, row.Err))
		if next := nextStep(row.Err, ""); next != "" {
			line += "; " + cleanLine(next)
		}
	case row.SchemaChanged:
		line += tool + pad(toolColumn-columns(tool)) + "  (changed) " + firstLine(toolSummary(row.Schema), 200)
	case row.Stale:
		line += tool + pad(toolColumn-columns(tool)) + "  (last known) " + firstLine(toolSummary(row.Schema), 200)
	default:
		line += tool + pad(toolColumn-columns(tool)) + "  " + firstLine(toolSummary(row.Schema), 200)
	}
	if w := a.tableWidth(); w > 0 && row.Err == nil {
		line = cut(line, w)
	}
	_, err := fmt.Fprintln(a.io.Out, strings.TrimRight(line, " "))
	return err
}

// bad marks a failure: a symbol and a word on a terminal, the word elsewhere.
func (a *factory) bad() string {
	if a.io.OutTTY {
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
	case exitCode(row.Err) == exitWaiting:
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
	out := fmt.Sprintf("%s from %s", countOf(n, "tool", "tools"), countOf(len(t.tools), "server", "servers"))
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
		return &silent{exitError}
	case len(t.waiting) > 0:
		return &silent{exitWaiting}
	}
	return nil
}
