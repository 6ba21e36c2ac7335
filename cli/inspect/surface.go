package inspect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
)

func newCmdSurface(f *cmdutil.Factory) *cobra.Command {
	c := &cobra.Command{
		Use: "surface", Short: "Show what agents see", GroupID: "config", Args: cmdutil.NoSubcommand,
		Example: "  usher surface explain",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCmdSurfaceExplain(f, nil))
	return c
}

type surfaceExplainOptions struct {
	f    *cmdutil.Factory
	json bool
}

func newCmdSurfaceExplain(f *cmdutil.Factory, runF func(context.Context, *surfaceExplainOptions) error) *cobra.Command {
	o := &surfaceExplainOptions{f: f}
	if runF == nil {
		runF = surfaceExplainRun
	}
	c := &cobra.Command{
		Use: "explain", Short: "Say which surface agents get, what it costs them, and why", Args: cmdutil.ExactArgs(0),
		Example: "  usher surface explain\n  usher surface explain --json",
		RunE:    func(c *cobra.Command, _ []string) error { return runF(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func surfaceExplainRun(ctx context.Context, o *surfaceExplainOptions) error {
	f := o.f
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	_, x := h.Frontend().Surface().Auto()
	if o.json {
		return f.PrintJSON(x)
	}
	fmt.Fprintf(f.IO.Out, "%s: %s\n", x.Mode, x.Why)
	fmt.Fprintf(f.IO.Out, "all tools under their own names cost an agent about %d tokens, the one tool %d; the budget is %d\n\n", x.Tokens, x.Meta, x.Budget)
	t := cmdutil.Table{Head: []string{"SERVER", "TOOLS", "TOKENS"}}
	for _, r := range x.Rows {
		if !r.Known {
			t.Add(r.Server, "–", "not seen yet")
			continue
		}
		t.Add(r.Server, fmt.Sprint(r.Tools), fmt.Sprint(r.Tokens))
	}
	t.Write(f.IO.Out, f.TableWidth())
	return nil
}
