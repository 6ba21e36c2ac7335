package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/policy"
)

type pinsOptions struct {
	targets []string // SERVER or SERVER/TOOL
	all     bool
	hash    string
	json    bool
	file    string
	strict  bool
}

func newCmdPins(a *factory) *cobra.Command {
	var o pinsOptions
	c := &cobra.Command{
		Use: "pins", Short: "Show which tools changed since they were first seen", GroupID: "run", Args: exactly(0),
		Long: `A tool is pinned when it is first seen: its name, texts, schemas and annotations.
One that changes later is blocked until you accept the change, so that a server
cannot turn a tool you trust into another one. What is shown needs no connection.`,
		Example: `  usher pins                     what changed, is new or has gone
  usher pins diff                how it changed
  usher pins accept github       all changes of a server
  usher pins accept github/search_issues
  usher pins lock                write mcp.lock beside the project's file
  usher pins verify              compare with it; exit code 11 when something differs`,
		RunE: func(c *cobra.Command, _ []string) error { return a.pinsList(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.all, "all", false, "show the unchanged ones too")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON, always of all tools")
	c.AddCommand(newCmdPinsDiff(a), newCmdPinsAccept(a), newCmdPinsLock(a), newCmdPinsVerify(a))
	return c
}

// known brings the pins up to date with the catalog and returns it.
func (a *factory) known(ctx context.Context) (*app.App, []app.CachedServer, error) {
	h, err := a.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	known, err := h.Catalog().Cached(ctx)
	return h, known, err
}

func (a *factory) pinsList(ctx context.Context, o pinsOptions) error {
	h, _, err := a.known(ctx)
	if err != nil {
		return err
	}
	pins, err := h.Pins().List(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return a.printJSON(pinsJSON(pins))
	}
	t := table{head: []string{"TOOL", "STATE", "WHAT", "SINCE"}}
	changed, servers := 0, map[string]bool{}
	for _, p := range pins {
		servers[p.Server] = true
		if p.State == policy.PinChanged {
			changed++
		}
		if o.all || p.State != policy.PinSame {
			t.add(config.Unquoted(p.Server+"/"+p.Tool), p.State, pinDetail(p), ago(time.Now(), p.At))
		}
	}
	if len(t.rows) > 0 {
		t.write(a.io.Out, a.tableWidth())
	}
	switch {
	case len(pins) == 0:
		a.note("nothing is pinned yet; tools are when they are first listed: usher discover")
	case changed == 0:
		a.note("%s of %s pinned, none is blocked", countOf(len(pins), "tool", "tools"), countOf(len(servers), "server", "servers"))
	default:
		a.note("%s of %s pinned, %d blocked until you accept the change", countOf(len(pins), "tool", "tools"), countOf(len(servers), "server", "servers"), changed)
		a.note("  usher pins diff")
		a.note("  %s", a.remedy("usher pins accept SERVER[/TOOL]"))
	}
	return nil
}

// pinDetail says in what a tool is not what was pinned.
func pinDetail(p policy.Pinned) string {
	var parts []string
	if len(p.Fields) > 0 {
		parts = append(parts, strings.Join(p.Fields, ", "))
	}
	if p.From != "" {
		parts = append(parts, "was "+p.From)
	}
	if len(p.Hidden) > 0 {
		parts = append(parts, "invisible characters in "+strings.Join(p.Hidden, ", "))
	}
	return cleanLine(strings.Join(parts, "; "))
}

// pinsJSON is the shape of usher pins --json.
func pinsJSON(pins []policy.Pinned) any {
	type pin struct {
		Server string    `json:"server"`
		Tool   string    `json:"tool"`
		State  string    `json:"state"`
		Hash   string    `json:"sha256"`
		Fields []string  `json:"fields,omitempty"`
		Hidden []string  `json:"hidden,omitempty"`
		From   string    `json:"from,omitempty"`
		First  time.Time `json:"first"`
		At     time.Time `json:"at"`
	}
	out := []pin{}
	for _, p := range pins {
		out = append(out, pin{p.Server, p.Tool, p.State, p.Hash, p.Fields, p.Hidden, p.From, p.First, p.At})
	}
	return map[string]any{"pins": out}
}

func newCmdPinsAccept(a *factory) *cobra.Command {
	var o pinsOptions
	c := &cobra.Command{
		Use: "accept SERVER[/TOOL]…", Short: "Take changed tools as they are now", Args: between(0, -1),
		Long: `Take the changed definitions as the new pins. Running ushers let the tools pass
from the next call on. With --hash only that very definition is accepted, which
usher pins diff --json shows: a server may change it again while you read.`,
		Example: `  usher pins accept github/search_issues
  usher pins accept github
  usher pins accept --all`,
		ValidArgsFunction: a.completeServers(-1),
		RunE: func(c *cobra.Command, args []string) error {
			o.targets = args
			return a.pinsAccept(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.all, "all", false, "all changes of all servers")
	c.Flags().StringVar(&o.hash, "hash", "", "accept the definition with this `sha256` only")
	return c
}

func (a *factory) pinsAccept(ctx context.Context, o pinsOptions) error {
	switch {
	case o.all == (len(o.targets) > 0):
		return usagef("usher pins accept SERVER[/TOOL], or usher pins accept --all", "name what to accept, or say --all")
	case o.hash != "" && (len(o.targets) != 1 || !strings.Contains(o.targets[0], "/")):
		return usagef("usher pins accept SERVER/TOOL --hash SHA256", "--hash belongs to one SERVER/TOOL")
	}
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	pins, targets := h.Pins(), o.targets
	if o.all {
		if targets, err = changedServers(ctx, pins); err != nil {
			return err
		}
	}
	n := 0
	for _, target := range targets {
		server, tool, _ := strings.Cut(target, "/")
		accepted, err := pins.Accept(ctx, server, tool, o.hash)
		if errors.Is(err, policy.ErrNotPinned) {
			return withHint(fmt.Errorf("%s is not pinned: it was never listed", target), "usher pins --all")
		}
		if err != nil {
			return err
		}
		for _, name := range accepted {
			a.note("accepted %s/%s", server, name)
		}
		n += len(accepted)
	}
	if n == 0 {
		a.note("nothing to accept: all is as it was pinned")
	}
	return nil
}

// changedServers lists the servers that have something to accept.
func changedServers(ctx context.Context, pins *policy.Pins) ([]string, error) {
	all, err := pins.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range all {
		if p.State != policy.PinSame && p.State != policy.PinRemoved && (len(out) == 0 || out[len(out)-1] != p.Server) {
			out = append(out, p.Server)
		}
	}
	return out, nil
}
