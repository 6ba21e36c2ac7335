package run

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/surface/search"
)

type searchOptions struct {
	f     *cmdutil.Factory
	words string
	limit int
	json  bool
}

func newCmdSearch(f *cmdutil.Factory, runF func(context.Context, *searchOptions) error) *cobra.Command {
	o := &searchOptions{f: f}
	if runF == nil {
		runF = searchRun
	}
	c := &cobra.Command{
		Use: "search WORDS…", Short: "Search tools across all servers", GroupID: "use", Args: cmdutil.RangeArgs(1, -1),
		Long: `Search tools by keywords in their names, titles, descriptions and parameters, best
match first. It searches the tools cached by earlier runs and starts nothing.`,
		Example: `  usher search open issues
  usher search send mail --limit 3
  usher search invoice --json | jq -r '.tools[0].tool'`,
		RunE: func(c *cobra.Command, args []string) error {
			o.words = strings.Join(args, " ")
			return runF(c.Context(), o)
		},
	}
	c.Flags().IntVar(&o.limit, "limit", search.DefaultLimit, "show at most `N` tools")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func searchRun(ctx context.Context, o *searchOptions) error {
	f := o.f
	if o.limit < 1 {
		return cmdutil.Usagef("usher search WORDS --limit 5", "--limit must be at least 1")
	}
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	known, err := h.Catalog().Cached(ctx)
	if err != nil {
		return err
	}
	found := app.Search(known, o.words, o.limit)
	if o.json {
		return f.PrintJSON(foundJSON(found))
	}
	if len(found) == 0 {
		f.Note("no matching tools for %s", config.Visible(o.words))
	} else {
		showFound(f, found)
	}
	if never := neverListed(known); len(never) > 0 {
		f.Note("never listed, so not searched: %s; usher discover asks them", strings.Join(never, ", "))
	}
	return nil
}

func showFound(f *cmdutil.Factory, found []app.Found) {
	t := cmdutil.Table{Head: []string{"SERVER", "TOOL", "", "WHAT IT DOES"}}
	for _, hit := range found {
		t.Add(config.Unquoted(hit.Account), cmdutil.Clean(hit.Tool.Name), toolMarks(hit.Tool), cmdutil.CleanLine(hit.Title))
	}
	t.Write(f.IO.Out, f.TableWidth())
}

// foundJSON is the shape of usher search --json.
func foundJSON(found []app.Found) any {
	type tool struct {
		Server  string  `json:"server"`
		Tool    string  `json:"tool"`
		Title   string  `json:"title"`
		Score   float64 `json:"score"`
		Changed bool    `json:"schema_changed,omitempty"`
	}
	out := []tool{}
	for _, f := range found {
		out = append(out, tool{f.Account, f.Tool.Name, f.Title, f.Score, f.Tool.SchemaChanged})
	}
	return map[string]any{"tools": out}
}

// neverListed names the servers of which no tools are known.
func neverListed(known []app.CachedServer) []string {
	var out []string
	for _, s := range known {
		if s.At.IsZero() {
			out = append(out, s.Account)
		}
	}
	return out
}
