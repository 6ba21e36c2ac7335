package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/status"
	"github.com/usher-mcp/usher/vault"
)

type statusOptions struct {
	f     *cmdutil.Factory
	name  string
	watch bool
	json  bool
}

func newCmdStatus(f *cmdutil.Factory, runF func(context.Context, *statusOptions) error) *cobra.Command {
	o := &statusOptions{f: f}
	if runF == nil {
		runF = statusRun
	}
	c := &cobra.Command{
		Use: "status [NAME]", Short: "Show server status", GroupID: "run", Args: cmdutil.RangeArgs(0, 1),
		Long: `Show every configured server and its state in running usher processes. This starts
nothing and connects to nothing: a server that is not running is shown as last seen.

States: idle (connects on the first call), connecting, connected, failed (the next
call retries), needs login, ejected (restarted too often: usher reload NAME),
held (usher approve NAME), disabled, broken (usher list).`,
		Example: `  usher status
  usher status github
  usher status --watch              refresh every second until Ctrl-C
  usher status --json | jq '.servers[] | select(.state != "connected").name'`,
		ValidArgsFunction: cmdutil.CompleteServers(f, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.name = args[0]
			}
			return runF(c.Context(), o)
		},
	}
	flags := c.Flags()
	flags.BoolVarP(&o.watch, "watch", "w", false, "refresh continuously; when not on a terminal, print changes")
	flags.BoolVar(&o.json, "json", false, "print JSON; with --watch one value per line whenever something changes")
	return c
}

func statusRun(ctx context.Context, o *statusOptions) error {
	f := o.f
	h, err := f.Open(ctx)
	if errors.Is(err, vault.ErrUnavailable) {
		return statusWithoutStore(ctx, f, o, err)
	}
	if err != nil {
		return err
	}
	if o.watch {
		return watchStatus(ctx, f, o, time.Second, func() (statusBoard, error) { return board(ctx, f, h, o.name) })
	}
	b, err := board(ctx, f, h, o.name)
	if err != nil {
		return err
	}
	return showBoard(f, b, o.json)
}

// statusWithoutStore shows what running instances say: they go on while the store is
// away, and only they know.
func statusWithoutStore(ctx context.Context, f *cmdutil.Factory, o *statusOptions, away error) error {
	peers, err := cmdutil.Running(ctx, f, 0)
	if err != nil || len(peers) == 0 || o.watch {
		return away
	}
	reports, problems := cmdutil.Reports(ctx, peers)
	b := MergeBoard(host.Status{}, reports)
	b.problems = append(problems, fmt.Errorf("showing only what running usher processes report: %w", away))
	return showBoard(f, b, o.json)
}

func showBoard(f *cmdutil.Factory, b statusBoard, asJSON bool) error {
	for _, problem := range b.problems {
		f.Note("%v", problem)
	}
	if asJSON {
		return f.PrintJSON(b)
	}
	if len(b.Servers) == 0 {
		f.Note("no servers yet; bring in those you have with usher import, or usher add NAME URL")
		return nil
	}
	fmt.Fprint(f.IO.Out, b.Table(Look(f, time.Now())))
	for _, line := range b.footnotes(time.Now()) {
		f.Note("%s", line)
	}
	return nil
}

// statusBoard is the state of everything. Its JSON form is frozen.
type statusBoard struct {
	Servers []statusServer        `json:"servers"`
	Ushers  []statusUsher         `json:"ushers"` // that run now
	Budgets []policy.BudgetStatus `json:"budgets"`
	Waiting []statusLogin         `json:"waiting"` // logins that a person has begun
	Orphans []string              `json:"orphans"` // logged in, but not configured

	problems []error // what could not be found out
}

// statusUsher is a running usher, or how a server is in it.
type statusUsher struct {
	PID     int        `json:"pid"`
	Started time.Time  `json:"started,omitzero"`
	State   host.State `json:"state,omitempty"`
	// Store is set while the usher cannot reach its store.
	Store *status.Store `json:"store,omitempty"`
}

// statusLogin is a login that waits for a person.
type statusLogin struct {
	Account string    `json:"account"`
	Started time.Time `json:"started"`
	Command string    `json:"command"`           // what finishes it, or removes it
	Removed bool      `json:"removed,omitempty"` // its server is not configured any more
}

// board looks at the configuration, the catalog and all running instances. With a name
// it shows that server or account only.
func board(ctx context.Context, f *cmdutil.Factory, h *app.App, name string) (statusBoard, error) {
	peers, err := cmdutil.Running(ctx, f, 0)
	if err != nil {
		return statusBoard{}, err
	}
	reports, problems := cmdutil.Reports(ctx, peers)
	b := MergeBoard(h.Status(), reports)
	b.problems = problems
	b.addLogins(ctx, h)
	b.AddConfigured(h.Config(), cmdutil.HeldBack(ctx, f, h.Config()))
	for i := range b.Servers {
		if s := &b.Servers[i]; s.State == status.Held {
			s.Note = cmdutil.Remedy(f, s.Note)
		}
	}
	if name == "" {
		return b, nil
	}
	all := b.Servers
	b.Servers = nil
	for _, s := range all {
		if s.Name == name || s.AccountName() == name {
			b.Servers = append(b.Servers, s)
		}
	}
	if len(b.Servers) == 0 {
		return b, noSuchAccount(f, h, name)
	}
	return b, nil
}

// noSuchAccount explains that there is no such server, or no such account of it.
func noSuchAccount(f *cmdutil.Factory, h *app.App, name string) error {
	server, _, labelled := strings.Cut(name, "@")
	if _, ok := h.Config().Server(server); ok && labelled {
		return cmdutil.WithHint(fmt.Errorf("%s is not in use by any running usher", name), "usher status %s", server)
	}
	return cmdutil.NoServer(h.Config(), name)
}

// watchStatus shows the board again and again until ctx ends. It runs on the
// caller's clock.
func watchStatus(ctx context.Context, f *cmdutil.Factory, o *statusOptions, every time.Duration, look func() (statusBoard, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	w := newWatcher(f, o)
	defer w.end()
	for {
		b, err := look()
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		if ctx.Err() != nil {
			return nil // Ctrl-C is how one leaves
		}
		if err := w.show(b, time.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
