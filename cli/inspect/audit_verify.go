package inspect

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/vault/audit"
)

type auditVerifyOptions struct {
	f       *cmdutil.Factory
	against string
	json    bool
}

func newCmdAuditVerify(f *cmdutil.Factory, runF func(context.Context, *auditVerifyOptions) error) *cobra.Command {
	o := &auditVerifyOptions{f: f}
	if runF == nil {
		runF = auditVerifyRun
	}
	c := &cobra.Command{
		Use: "verify", Short: "Check that nobody changed the audit log", Args: cmdutil.ExactArgs(0),
		Long: `Read the whole audit log and check that every block is what its hash says, was
written with the audit key of the store, and follows the one before. Ends with 1 when
something does not fit.

Somebody who can write the database, but does not have the key, cannot change or add
blocks, but could remove the end of a chain or a whole one. Keep what --json prints
somewhere else and give it back with --against: then that shows, too.`,
		Example: `  usher audit verify
  usher audit verify --json > heads.json
  usher audit verify --against heads.json`,
		RunE: func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().StringVar(&o.against, "against", "", "also compare with a `file` that an earlier --json wrote")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

type auditVerifyJSON struct {
	OK   bool  `json:"ok"`
	Acts int64 `json:"acts"`
	Lost int64 `json:"lost"`
	// Unkeyed blocks have a hash but no authentication code.
	Unkeyed int64         `json:"unkeyed_blocks"`
	Chains  []audit.Chain `json:"chains"`
}

func auditVerifyRun(ctx context.Context, o *auditVerifyOptions) error {
	f, against, asJSON := o.f, o.against, o.json
	heads, err := readHeads(against)
	if err != nil {
		return err
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	chains, err := h.Audit().Verify(ctx, heads)
	if err != nil {
		return err
	}
	sum := auditVerifyJSON{OK: true, Chains: chains}
	open := 0
	for _, c := range chains {
		sum.OK = sum.OK && len(c.Problems) == 0
		sum.Acts += c.Records
		sum.Lost += c.Lost
		sum.Unkeyed += c.Unkeyed
		if !c.Closed {
			open++
		}
	}
	if asJSON {
		if err := f.PrintJSON(sum); err != nil {
			return err
		}
	} else {
		tellVerified(f, sum, open)
	}
	if !sum.OK {
		return cmdutil.WithHint(errors.New("the audit log is not what was written"), "compare with a backup of the store; who can write to it besides usher?")
	}
	return nil
}

func tellVerified(f *cmdutil.Factory, sum auditVerifyJSON, open int) {
	for _, c := range sum.Chains {
		for _, p := range c.Problems {
			f.Note("chain %s (%s, from %s): %s", cmdutil.CleanLine(c.Writer), cmdutil.CleanLine(c.Process), c.From.Local().Format(time.DateTime), cmdutil.CleanLine(p))
		}
	}
	if sum.OK {
		f.Note("OK: verified %s in %s", cmdutil.Count(int(sum.Acts), "call"), cmdutil.Count(len(sum.Chains), "chain"))
	}
	if sum.Unkeyed > 0 {
		f.Note("  %s no authentication code: an older usher wrote them", cmdutil.CountOf(int(sum.Unkeyed), "block has", "blocks have"))
	}
	if open > 0 {
		f.Note("  %s not ended: usher still runs, or was killed", cmdutil.CountOf(open, "chain has", "chains have"))
	}
	if sum.Lost > 0 {
		f.Note("  %s could not be recorded while the store was unreachable", cmdutil.Count(int(sum.Lost), "call"))
	}
}
