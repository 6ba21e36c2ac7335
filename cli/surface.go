package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newCmdSurface(a *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "surface", Short: "See what agents see of your servers", GroupID: "config", Args: noSubcommand,
		Example: "  usher surface explain",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var asJSON bool
	explain := &cobra.Command{
		Use: "explain", Short: "Say which surface agents get, what it costs them, and why", Args: exactly(0),
		Example: "  usher surface explain\n  usher surface explain --json",
		RunE:    func(c *cobra.Command, _ []string) error { return a.surfaceExplain(c.Context(), asJSON) },
	}
	explain.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(explain)
	return c
}

func (a *factory) surfaceExplain(ctx context.Context, asJSON bool) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	_, x := h.Frontend().Surface().Auto()
	if asJSON {
		return a.printJSON(x)
	}
	fmt.Fprintf(a.io.Out, "%s: %s\n", x.Mode, x.Why)
	fmt.Fprintf(a.io.Out, "all tools under their own names cost an agent about %d tokens, the one tool %d; the budget is %d\n\n", x.Tokens, x.Meta, x.Budget)
	t := table{head: []string{"SERVER", "TOOLS", "TOKENS"}}
	for _, r := range x.Rows {
		if !r.Known {
			t.add(r.Server, "–", "not seen yet")
			continue
		}
		t.add(r.Server, fmt.Sprint(r.Tools), fmt.Sprint(r.Tokens))
	}
	t.write(a.io.Out, a.tableWidth())
	return nil
}
