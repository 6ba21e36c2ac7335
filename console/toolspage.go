package console

import (
	"context"
	"net/url"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/surface/search"
)

// toolView is a tool in a list.
type toolView struct {
	ID      string
	Account string
	Name    string
	Shown   string // the name, with everything made visible
	Title   string
	Mark    string // reads, destroys, changed
}

// Address is that of its page.
func (v toolView) Address() string { return address(pathTool, "server", v.Account, "name", v.Name) }

func viewTool(t Tool) toolView {
	v := toolView{ID: id("t", t.Account+"/"+t.Name), Account: t.Account, Name: t.Name, Shown: plain(t.Name), Mark: mark(t)}
	if t.Blocked {
		return v // its words are not to be believed before somebody has looked
	}
	if v.Title = jsonx.GetText(t.Definition, "description"); v.Title == "" {
		v.Title = jsonx.GetText(t.Definition, "title")
	}
	v.Title = firstLine(v.Title, 160)
	return v
}

// mark says in a word what a tool does, as far as its server tells.
func mark(t Tool) string {
	hints, _ := jsonx.Get(t.Definition, "annotations")
	is := func(key string) bool { v, _ := jsonx.Get(hints, key); return string(v) == "true" }
	switch {
	case t.Blocked:
		return "changed"
	case is("readOnlyHint"):
		return "reads"
	case is("destructiveHint"):
		return "destroys"
	}
	return ""
}

// Bounds of the list of tools.
const (
	maxFound  = 50
	maxListed = 500
)

// toolsPage is all tools, or those that fit a search.
type toolsPage struct {
	Query   string
	Tools   []toolView
	Total   int
	More    int // that are not shown
	Problem string
}

func (c *Console) toolsPage(ctx context.Context, v *screen, q url.Values) {
	v.Title, v.Nav, v.body = "Tools", "tools", "tools"
	p := toolsPage{Query: q.Get("q")}
	all, err := c.world.Tools(ctx)
	if err != nil {
		p.Problem = err.Error()
	}
	p.Total = len(all)
	if p.Query == "" {
		for _, t := range all[:min(len(all), maxListed)] {
			p.Tools = append(p.Tools, viewTool(t))
		}
		p.More = len(all) - len(p.Tools)
	} else {
		p.Tools = findTools(all, p.Query)
	}
	v.Page = p
}

func findTools(all []Tool, words string) []toolView {
	docs := make([]search.Document, len(all))
	by := map[[2]string]Tool{}
	for i, t := range all {
		docs[i] = search.Document{Server: t.Account, Tool: t.Name, Definition: t.Definition}
		by[[2]string{t.Account, t.Name}] = t
	}
	var out []toolView
	for _, hit := range search.NewIndex(docs).Search(words, maxFound) {
		out = append(out, viewTool(by[[2]string{hit.Server, hit.Tool}]))
	}
	return out
}
