package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/surface"
)

type searchOptions struct {
	words string
	limit int
	json  bool
}

func newCmdSearch(a *factory) *cobra.Command {
	var o searchOptions
	c := &cobra.Command{
		Use: "search WORDS…", Short: "Find tools of all servers by words", GroupID: "use", Args: between(1, -1),
		Long: `Find tools by words in their names, titles, descriptions and parameters, the best
first. It looks at what is known from earlier runs and starts nothing.`,
		Example: `  usher search open issues
  usher search send mail --limit 3
  usher search invoice --json | jq -r '.tools[0].tool'`,
		RunE: func(c *cobra.Command, args []string) error {
			o.words = strings.Join(args, " ")
			return a.search(c.Context(), o)
		},
	}
	c.Flags().IntVar(&o.limit, "limit", surface.DefaultLimit, "show at most `N` tools")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func (a *factory) search(ctx context.Context, o searchOptions) error {
	if o.limit < 1 {
		return usagef("usher search WORDS --limit 5", "--limit must be at least 1")
	}
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	known, err := h.Catalog().Cached(ctx)
	if err != nil {
		return err
	}
	found := app.Search(known, o.words, o.limit)
	if o.json {
		return a.printJSON(foundJSON(found))
	}
	if len(found) == 0 {
		a.note("no known tool fits %s", config.Visible(o.words))
	} else {
		a.showFound(found)
	}
	if never := neverListed(known); len(never) > 0 {
		a.note("never listed, so not searched: %s; usher discover asks them", strings.Join(never, ", "))
	}
	return nil
}

func (a *factory) showFound(found []app.Found) {
	t := table{head: []string{"SERVER", "TOOL", "", "WHAT IT DOES"}}
	for _, f := range found {
		t.add(config.Unquoted(f.Account), clean(f.Tool.Name), toolMarks(f.Tool), cleanLine(f.Title))
	}
	t.write(a.io.Out, a.tableWidth())
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
