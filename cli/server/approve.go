package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

type approveOptions struct {
	f      *cmdutil.Factory
	names  []string
	all    bool
	yes    bool
	list   bool
	revoke bool
	json   bool
}

func newCmdApprove(f *cmdutil.Factory, runF func(context.Context, *approveOptions) error) *cobra.Command {
	o := &approveOptions{f: f}
	if runF == nil {
		runF = approveRun
	}
	c := &cobra.Command{
		Use: "approve [NAME…]", Short: "Review and approve project servers", GroupID: "config",
		Long: `A project file is untrusted input. usher blocks a server that would run a program, or
would get your environment, files or secrets, until you approve that exact definition.
It also blocks every server that is not a plain https URL on the public internet:
other addresses, headers and login settings. A changed definition needs approval
again. A plain URL is used as long as its name resolves to a public address; approve
it here if it may be a private one.

Every field is shown in full; invisible and look-alike characters are escaped.`,
		Example: `  usher approve              review all blocked servers, one after the other
  usher approve docs
  usher approve --all --yes  approve all without confirmation
  usher approve --list       what you have approved
  usher approve --revoke docs`,
		Args:              cmdutil.RangeArgs(0, -1),
		ValidArgsFunction: cmdutil.CompleteServers(f, -1),
		RunE: func(c *cobra.Command, args []string) error {
			o.names = args
			return runF(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.all, "all", false, "all blocked servers (the default without a NAME)")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "approve without confirmation")
	c.Flags().BoolVar(&o.list, "list", false, "show what you have approved")
	c.Flags().BoolVar(&o.revoke, "revoke", false, "revoke the approvals of NAME")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON (with --list, or to show what is blocked)")
	return c
}

func approveRun(ctx context.Context, o *approveOptions) error {
	f := o.f
	switch {
	case o.list && (o.revoke || o.yes || o.all):
		return cmdutil.Usagef("usher approve --list", "--list only shows; leave the other flags out")
	case o.revoke && len(o.names) == 0:
		return cmdutil.Usagef("usher approve --revoke NAME", "--revoke needs the NAME of a server")
	case o.all && len(o.names) > 0:
		return cmdutil.Usagef("usher approve --all", "--all means every server; leave out %s", config.Visible(o.names[0]))
	case o.json && (o.yes || o.revoke):
		return cmdutil.Usagef("usher approve --json", "--json only shows; leave the other flags out")
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	switch approvals := h.Approvals(); {
	case o.list:
		return approveList(ctx, f, approvals, o)
	case o.revoke:
		return approveRevoke(ctx, f, approvals, o.names)
	default:
		return approveAsk(ctx, f, h.Config(), approvals, o)
	}
}

// approveAsk shows what is held back, and asks.
func approveAsk(ctx context.Context, f *cmdutil.Factory, cfg *config.Config, approvals *vault.Approvals, o *approveOptions) error {
	waiting, err := heldServers(ctx, cfg, approvals, o.names)
	if err != nil {
		return err
	}
	if o.json {
		return approveJSON(f, waiting)
	}
	if len(waiting) == 0 {
		f.Note("nothing is held back")
		return nil
	}
	earlier, err := approvals.List(ctx)
	if err != nil {
		return fmt.Errorf("read what was approved before: %w", err)
	}
	refused := 0
	for i, s := range waiting {
		if i > 0 {
			fmt.Fprintln(f.IO.Out)
		}
		approveShow(f, s, earlier)
		agreed := o.yes
		if !agreed && f.IO.InTTY {
			if agreed, err = f.Confirm(ctx, "start "+s.Name+" as shown?"); err != nil {
				return fmt.Errorf("approve %s: %w", s.Name, err)
			}
		}
		if !agreed {
			refused++
			if !f.IO.InTTY {
				continue // all are shown first, then the error tells how to agree
			}
			f.Note("%s stays held back", s.Name)
			continue
		}
		if err := approvals.Approve(ctx, vault.Approval{Digest: s.Digest(), Server: s.Name, Origin: s.Origin.File, Fields: s.Masked().Describe()}); err != nil {
			return fmt.Errorf("keep the approval of %s: %w", s.Name, err)
		}
		f.Note("approved %s; next: usher tools %s", s.Name, s.Name)
	}
	if refused > 0 && !f.IO.InTTY {
		return cmdutil.WithHint(cmdutil.ErrNoTerminal, "%s", cmdutil.AgreeHint(f, "look at what is shown, then: usher approve %s", strings.Join(append(o.names, "--yes"), " ")))
	}
	if refused > 0 {
		return &cmdutil.SilentError{Code: cmdutil.ExitWaiting}
	}
	return nil
}

// heldServers lists the servers that wait for a person; a named one that does not
// is told apart.
func heldServers(ctx context.Context, cfg *config.Config, approvals *vault.Approvals, names []string) ([]config.Server, error) {
	if err := cmdutil.KnownServers(cfg, names); err != nil {
		return nil, err
	}
	servers := cfg.Servers
	if len(names) > 0 {
		servers = nil
		for _, name := range names {
			s, _ := cfg.Server(name)
			if s.Problem != nil {
				return nil, fmt.Errorf("%s is broken and cannot be approved: %w", name, s.Problem)
			}
			servers = append(servers, s)
		}
	}
	var out []config.Server
	for _, s := range servers {
		// A plain address is used without approval as far as it is public; a person who
		// names it can approve it, so that it may be private.
		if s.Problem != nil || !s.NeedsApproval() && (len(names) == 0 || !s.PublicOnly()) {
			continue
		}
		approved, err := approvals.Approved(ctx, s.Digest())
		if err != nil {
			return nil, fmt.Errorf("read the approval of %s: %w", s.Name, err)
		}
		if !approved {
			out = append(out, s)
		}
	}
	return out, nil
}

// approveShow prints every field of a definition. It is what the person decides
// on, so nothing is cut and nothing is masked.
func approveShow(f *cmdutil.Factory, s config.Server, earlier []vault.Approval) {
	var last vault.Approval
	for _, e := range earlier {
		if e.Server == s.Name && e.Origin == s.Origin.File && e.At.After(last.At) {
			last = e
		}
	}
	if !last.At.IsZero() {
		f.Note("%s has changed since you approved it on %s", s.Name, last.At.Local().Format("2 January 2006, 15:04"))
	}
	for _, line := range changedFields(s, last.Fields) {
		fmt.Fprintln(f.IO.Out, line)
	}
}

// changedFields is the whole definition, a field a line. Where an earlier one is
// known, new lines are marked with + and those that are gone follow, marked with -.
func changedFields(s config.Server, earlier []string) []string {
	lines := s.Describe()
	if len(earlier) == 0 {
		return lines
	}
	masked := s.Masked().Describe()
	for i := range lines {
		mark := "  "
		if !slices.Contains(earlier, masked[i]) {
			mark = "+ "
		}
		lines[i] = mark + lines[i]
	}
	for _, old := range earlier {
		if !slices.Contains(masked, old) {
			lines = append(lines, "- "+old)
		}
	}
	return lines
}

func approveJSON(f *cmdutil.Factory, waiting []config.Server) error {
	type held struct {
		Name    string   `json:"name"`
		Digest  string   `json:"digest"`
		File    string   `json:"file"`
		Line    int      `json:"line"`
		Reasons []string `json:"reasons"`
		Fields  []string `json:"fields"`
	}
	out := []held{}
	for _, s := range waiting {
		out = append(out, held{s.Name, s.Digest(), s.Origin.File, s.Origin.Line, s.ApprovalReasons(), s.Masked().Describe()})
	}
	return f.PrintJSON(map[string]any{"held": out})
}

func approveList(ctx context.Context, f *cmdutil.Factory, approvals *vault.Approvals, o *approveOptions) error {
	list, err := approvals.List(ctx)
	if err != nil {
		return fmt.Errorf("read approvals: %w", err)
	}
	if o.json {
		return f.PrintJSON(map[string]any{"approvals": list})
	}
	if len(list) == 0 {
		f.Note("nothing has been approved yet")
		return nil
	}
	t := cmdutil.Table{Head: []string{"NAME", "APPROVED", "DEFINITION", "FILE"}}
	for _, e := range list {
		t.Add(config.Unquoted(e.Server), e.At.Local().Format(time.DateTime), cmdutil.Truncate(strings.TrimPrefix(e.Digest, "sha256:"), 13), cmdutil.Clean(f.Short(e.Origin)))
	}
	t.Write(f.IO.Out, 0)
	return nil
}

func approveRevoke(ctx context.Context, f *cmdutil.Factory, approvals *vault.Approvals, names []string) error {
	list, err := approvals.List(ctx)
	if err != nil {
		return fmt.Errorf("read approvals: %w", err)
	}
	for _, name := range names {
		n := 0
		for _, e := range list {
			if e.Server != name {
				continue
			}
			if err := approvals.Revoke(ctx, e.Digest); err != nil {
				return fmt.Errorf("revoke the approval of %s: %w", name, err)
			}
			n++
		}
		if n == 0 {
			return cmdutil.WithHint(fmt.Errorf("nothing named %s has been approved", config.Visible(name)), "usher approve --list")
		}
		f.Note("revoked %s; it is held back until you approve it again", name)
	}
	return nil
}
