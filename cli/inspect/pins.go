package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/policy/pins"
)

type pinsOptions struct {
	f       *cmdutil.Factory
	targets []string // SERVER or SERVER/TOOL
	all     bool
	hash    string
	json    bool
	file    string
	strict  bool
}

func newCmdPins(f *cmdutil.Factory, runF func(context.Context, *pinsOptions) error) *cobra.Command {
	o := &pinsOptions{f: f}
	if runF == nil {
		runF = pinsList
	}
	c := &cobra.Command{
		Use: "pins", Short: "Show which tools changed since they were first seen", GroupID: "run", Args: cmdutil.ExactArgs(0),
		Long: `A tool is pinned when it is first seen: its name, texts, schemas and annotations.
One that changes later is blocked until you accept the change, so that a server
cannot turn a tool you trust into another one. This command needs no connection.`,
		Example: `  usher pins                     what changed, is new or has gone
  usher pins diff                how it changed
  usher pins accept github       all changes of a server
  usher pins accept github/search_issues
  usher pins lock                write mcp.lock next to the project's file
  usher pins verify              compare with it; exit code 11 when something differs`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.all, "all", false, "show the unchanged ones too")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON, always of all tools")
	c.AddCommand(newCmdPinsDiff(f, nil), newCmdPinsAccept(f, nil), newCmdPinsLock(f, nil), newCmdPinsVerify(f, nil))
	return c
}

// known brings the pins up to date with the catalog and returns it.
func known(ctx context.Context, f *cmdutil.Factory) (*app.App, []app.CachedServer, error) {
	h, err := f.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	known, err := h.Catalog().Cached(ctx)
	return h, known, err
}

func pinsList(ctx context.Context, o *pinsOptions) error {
	f := o.f
	h, _, err := known(ctx, f)
	if err != nil {
		return err
	}
	list, err := h.Pins().List(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return f.PrintJSON(pinsJSON(list))
	}
	t := cmdutil.Table{Head: []string{"TOOL", "STATE", "WHAT", "SINCE"}}
	changed, servers := 0, map[string]bool{}
	for _, p := range list {
		servers[p.Server] = true
		if p.State == pins.StateChanged {
			changed++
		}
		if o.all || p.State != pins.StateSame {
			t.Add(config.Unquoted(p.Server+"/"+p.Tool), p.State, pinDetail(p), ago(time.Now(), p.At))
		}
	}
	if len(t.Rows) > 0 {
		t.Write(f.IO.Out, f.TableWidth())
	}
	switch {
	case len(list) == 0:
		f.Note("nothing is pinned yet; tools are when they are first listed: usher discover")
	case changed == 0:
		f.Note("%s of %s pinned, none is blocked", cmdutil.CountOf(len(list), "tool", "tools"), cmdutil.CountOf(len(servers), "server", "servers"))
	default:
		f.Note("%s of %s pinned, %d blocked until you accept the change", cmdutil.CountOf(len(list), "tool", "tools"), cmdutil.CountOf(len(servers), "server", "servers"), changed)
		f.Note("  usher pins diff")
		f.Note("  %s", cmdutil.Remedy(f, "usher pins accept SERVER[/TOOL]"))
	}
	return nil
}

// pinDetail says in what a tool is not what was pinned.
func pinDetail(p pins.Pinned) string {
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
	return cmdutil.CleanLine(strings.Join(parts, "; "))
}

// pinsJSON is the shape of usher pins --json.
func pinsJSON(list []pins.Pinned) any {
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
	for _, p := range list {
		out = append(out, pin{p.Server, p.Tool, p.State, p.Hash, p.Fields, p.Hidden, p.From, p.First, p.At})
	}
	return map[string]any{"pins": out}
}

func newCmdPinsAccept(f *cmdutil.Factory, runF func(context.Context, *pinsOptions) error) *cobra.Command {
	o := &pinsOptions{f: f}
	if runF == nil {
		runF = pinsAcceptRun
	}
	c := &cobra.Command{
		Use: "accept SERVER[/TOOL]…", Short: "Accept changed tools", Args: cmdutil.RangeArgs(0, -1),
		Long: `Accept the changed definitions as the new pins. Running usher processes allow the
tools from the next call on. --hash accepts only the definition with that hash, which
usher pins diff --json shows: a server may change it again while you read.`,
		Example: `  usher pins accept github/search_issues
  usher pins accept github
  usher pins accept --all`,
		ValidArgsFunction: cmdutil.CompleteServers(f, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.targets = args
			return runF(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.all, "all", false, "all changes of all servers")
	c.Flags().StringVar(&o.hash, "hash", "", "accept the definition with this `sha256` only")
	return c
}

func pinsAcceptRun(ctx context.Context, o *pinsOptions) error {
	f := o.f
	switch {
	case o.all == (len(o.targets) > 0):
		return cmdutil.Usagef("usher pins accept SERVER[/TOOL], or usher pins accept --all", "name what to accept, or say --all")
	case o.hash != "" && (len(o.targets) != 1 || !strings.Contains(o.targets[0], "/")):
		return cmdutil.Usagef("usher pins accept SERVER/TOOL --hash SHA256", "--hash belongs to one SERVER/TOOL")
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	store, targets := h.Pins(), o.targets
	if o.all {
		if targets, err = changedServers(ctx, store); err != nil {
			return err
		}
	}
	n := 0
	for _, target := range targets {
		server, tool, _ := strings.Cut(target, "/")
		accepted, err := store.Accept(ctx, server, tool, o.hash)
		if errors.Is(err, pins.ErrNotPinned) {
			return cmdutil.WithHint(fmt.Errorf("%s is not pinned: it was never listed", target), "usher pins --all")
		}
		if err != nil {
			return err
		}
		for _, name := range accepted {
			f.Note("accepted %s/%s", server, name)
		}
		n += len(accepted)
	}
	if n == 0 {
		f.Note("nothing to accept: all is as it was pinned")
	}
	return nil
}

// changedServers lists the servers that have something to accept.
func changedServers(ctx context.Context, store *pins.Store) ([]string, error) {
	all, err := store.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range all {
		if p.State != pins.StateSame && p.State != pins.StateRemoved && (len(out) == 0 || out[len(out)-1] != p.Server) {
			out = append(out, p.Server)
		}
	}
	return out, nil
}
