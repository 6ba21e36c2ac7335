package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/vault"
)

func newCmdAuditVerify(a *factory) *cobra.Command {
	var against string
	var asJSON bool
	c := &cobra.Command{
		Use: "verify", Short: "Check that nobody changed the audit log", Args: exactly(0),
		Long: `Read the whole audit log and check that every block is what its hash says, was
written with the audit key of the store, and follows the one before. Ends with 1 when
something does not fit.

Somebody who can write the database, but does not have the key, cannot change or add
blocks, but could remove the end of a chain or a whole one. Keep what --json prints
somewhere else and give it back with --against: then that shows, too.`,
		Example: `  usher audit verify
  usher audit verify --json > heads.json
  usher audit verify --against heads.json`,
		RunE: func(c *cobra.Command, _ []string) error { return a.auditVerify(c.Context(), against, asJSON) },
	}
	c.Flags().StringVar(&against, "against", "", "also compare with a `file` that an earlier --json wrote")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

type auditVerifyJSON struct {
	OK   bool  `json:"ok"`
	Acts int64 `json:"acts"`
	Lost int64 `json:"lost"`
	// Unkeyed blocks have a hash but no authentication code.
	Unkeyed int64         `json:"unkeyed_blocks"`
	Chains  []vault.Chain `json:"chains"`
}

func (a *factory) auditVerify(ctx context.Context, against string, asJSON bool) error {
	heads, err := readHeads(against)
	if err != nil {
		return err
	}
	h, err := a.open(ctx)
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
		sum.Acts += c.Acts
		sum.Lost += c.Lost
		sum.Unkeyed += c.Unkeyed
		if !c.Closed {
			open++
		}
	}
	if asJSON {
		if err := a.printJSON(sum); err != nil {
			return err
		}
	} else {
		a.tellVerified(sum, open)
	}
	if !sum.OK {
		return withHint(errors.New("the audit log is not what was written"), "compare with a backup of the store; who can write to it besides usher?")
	}
	return nil
}

func (a *factory) tellVerified(sum auditVerifyJSON, open int) {
	for _, c := range sum.Chains {
		for _, p := range c.Problems {
			a.note("chain %s (%s, from %s): %s", cleanLine(c.Writer), cleanLine(c.Process), c.From.Local().Format(time.DateTime), cleanLine(p))
		}
	}
	if sum.OK {
		a.note("%s in %s: all are as they were written", count(int(sum.Acts), "call"), count(len(sum.Chains), "chain"))
	}
	if sum.Unkeyed > 0 {
		a.note("  %s no authentication code: an older usher wrote them", countOf(int(sum.Unkeyed), "block has", "blocks have"))
	}
	if open > 0 {
		a.note("  %s not ended: usher still runs, or was killed", countOf(open, "chain has", "chains have"))
	}
	if sum.Lost > 0 {
		a.note("  %s could not be kept while the store was away, as the trail says", count(int(sum.Lost), "call"))
	}
}
