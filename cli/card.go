package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/internal/servercard"
)

func newCmdCard(a *factory) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "card SERVER", Short: "Show what a server announces before it is connected to", GroupID: "use", Args: exactly(1),
		Long: `Read the server card that "card" of the definition names, a path or a URL, and show
the name, description, addresses and tools in it. The server is not connected to, and
no credentials are sent. Redirects are not followed.

A card proves nothing. Its tools are "announced" until the server was seen; then they
are "offered" or "missing". Pins are made of what the server itself lists.`,
		Example: `  usher card notes
  usher card notes --json | jq -r '.tools[].name'`,
		ValidArgsFunction: a.completeServers(1),
		RunE:              func(c *cobra.Command, args []string) error { return a.card(c.Context(), args[0], asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// The shape of usher card --json.
type (
	cardJSON struct {
		Server      string           `json:"server"`
		Source      string           `json:"source"`
		Name        string           `json:"name"`
		Title       string           `json:"title,omitempty"`
		Version     string           `json:"version,omitempty"`
		Description string           `json:"description,omitempty"`
		WebsiteURL  string           `json:"website_url,omitempty"`
		Remotes     []cardRemoteJSON `json:"remotes"`
		Seen        bool             `json:"seen"`
		Tools       []cardToolJSON   `json:"tools"`
		Dynamic     bool             `json:"dynamic,omitempty"`
		LeftOut     int              `json:"left_out,omitempty"`
		Others      []string         `json:"others,omitempty"`
	}
	cardRemoteJSON struct {
		Type             string   `json:"type"`
		URL              string   `json:"url"`
		ProtocolVersions []string `json:"protocol_versions,omitempty"`
	}
	cardToolJSON struct {
		Name        string          `json:"name"`
		State       string          `json:"state"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema,omitempty"`
	}
)

func (a *factory) card(ctx context.Context, server string, asJSON bool) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	c, err := h.Catalog().Card(ctx, server)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(cardShape(c))
	}
	a.showCard(c)
	return nil
}

func cardShape(c servercard.Card) cardJSON {
	out := cardJSON{
		Server: c.Server, Source: c.Source, Name: c.Name, Title: c.Title, Version: c.Version, Description: c.Description,
		WebsiteURL: c.WebsiteURL, Remotes: []cardRemoteJSON{}, Seen: c.Seen, Tools: []cardToolJSON{},
		Dynamic: c.Dynamic, LeftOut: c.Left, Others: c.Others,
	}
	for _, r := range c.Remotes {
		out.Remotes = append(out.Remotes, cardRemoteJSON(r))
	}
	for _, t := range c.Tools {
		out.Tools = append(out.Tools, cardToolJSON{t.Name, t.State, t.Title, t.Description, t.InputSchema})
	}
	return out
}

func (a *factory) showCard(c servercard.Card) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(a.io.Out, "%-12s %s\n", name, firstLine(text, 500))
		}
	}
	line("name", c.Name)
	line("title", c.Title)
	line("version", c.Version)
	line("description", c.Description)
	line("website", c.WebsiteURL)
	for _, r := range c.Remotes {
		line("address", r.URL+" ("+r.Type+")")
	}
	line("card", c.Source)
	if len(c.Tools) > 0 {
		fmt.Fprintln(a.io.Out)
		t := table{head: []string{"TOOL", "STATE", "DESCRIPTION"}}
		for _, tool := range c.Tools {
			t.add(clean(tool.Name), tool.State, firstLine(tool.Description, 200))
		}
		t.write(a.io.Out, a.tableWidth())
	}
	if !c.Seen {
		a.note("%s was not connected to yet: this is only what its card announces; next: usher tools %s", c.Server, c.Server)
	}
	if c.Left > 0 {
		a.note("%s left out: without a usable name, or too many", countOf(c.Left, "tool was", "tools were"))
	}
	if len(c.Others) > 0 {
		a.note("%s has %s that the card does not announce", c.Server, countOf(len(c.Others), "tool", "tools"))
	}
}
