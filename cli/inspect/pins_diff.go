package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/policy/pins"
)

func newCmdPinsDiff(f *cmdutil.Factory, runF func(context.Context, *pinsOptions) error) *cobra.Command {
	o := &pinsOptions{f: f}
	if runF == nil {
		runF = pinsDiffRun
	}
	c := &cobra.Command{
		Use: "diff [SERVER[/TOOL]…]", Short: "Show how tools differ from their pins", Args: cmdutil.RangeArgs(0, -1),
		Long: `Show how changed tools differ from what was pinned, of all servers when none is
named. Characters that would not show are written as escapes.`,
		Example: `  usher pins diff
  usher pins diff github/search_issues`,
		ValidArgsFunction: cmdutil.CompleteServers(f, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.targets = args
			return runF(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func pinsDiffRun(ctx context.Context, o *pinsOptions) error {
	f := o.f
	h, _, err := known(ctx, f)
	if err != nil {
		return err
	}
	diffs, err := wantedDiffs(ctx, h.Pins(), o.targets)
	if err != nil {
		return err
	}
	if o.json {
		return f.PrintJSON(diffsJSON(diffs))
	}
	for _, d := range diffs {
		if _, err := fmt.Fprint(f.IO.Out, cmdutil.Clean(d.String())); err != nil {
			return err
		}
	}
	if len(diffs) == 0 {
		f.Note("no tool differs from its pin")
		return nil
	}
	if f.Agent() != "" {
		f.Note("blocked; %s", cmdutil.ByPerson)
		return nil
	}
	f.Note("accept with:")
	for _, d := range diffs {
		f.Note("  usher pins accept %s", config.Unquoted(d.Server+"/"+d.Tool))
	}
	return nil
}

// wantedDiffs compares what was asked for; tools that are as pinned are left out.
func wantedDiffs(ctx context.Context, store *pins.Store, targets []string) ([]pins.Diff, error) {
	all, err := store.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []pins.Diff
	found := map[string]bool{}
	for _, p := range all {
		wanted := len(targets) == 0
		for _, t := range targets {
			server, tool, _ := strings.Cut(t, "/")
			if p.Server == server && (tool == "" || tool == p.Tool) {
				wanted, found[t] = true, true
			}
		}
		if !wanted || p.State != pins.StateChanged {
			continue
		}
		d, err := store.Diff(ctx, p.Server, p.Tool)
		if errors.Is(err, pins.ErrNotPinned) || err == nil && d.Hash == "" {
			continue // accepted or forgotten a moment ago
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	for _, t := range targets {
		if !found[t] {
			return nil, cmdutil.WithHint(fmt.Errorf("%s is not pinned: it was never listed", config.Unquoted(t)), "usher pins --all")
		}
	}
	return out, nil
}

// diffsJSON is the shape of usher pins diff --json.
func diffsJSON(diffs []pins.Diff) any {
	type change struct {
		Path []string        `json:"path"`
		Kind string          `json:"kind"`
		Old  json.RawMessage `json:"old,omitempty"`
		New  json.RawMessage `json:"new,omitempty"`
	}
	type diff struct {
		Server     string   `json:"server"`
		Tool       string   `json:"tool"`
		Hash       string   `json:"sha256"` // of the changed definition
		Changes    []change `json:"changes"`
		Hidden     []string `json:"hidden,omitempty"`
		Incomplete bool     `json:"incomplete,omitempty"`
	}
	out := []diff{}
	for _, d := range diffs {
		changes := []change{}
		for _, c := range d.Changes {
			changes = append(changes, change{c.Path, c.Kind, c.Old, c.New})
		}
		out = append(out, diff{d.Server, d.Tool, d.Hash, changes, d.Hidden, d.Incomplete})
	}
	return map[string]any{"diffs": out}
}
