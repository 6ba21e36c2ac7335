package run

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/servercard"
)

type cardOptions struct {
	f      *cmdutil.Factory
	server string
	json   bool
}

func newCmdCard(f *cmdutil.Factory, runF func(context.Context, *cardOptions) error) *cobra.Command {
	o := &cardOptions{f: f}
	if runF == nil {
		runF = cardRun
	}
	c := &cobra.Command{
		Use: "card SERVER", Short: "Show a server's card without connecting", GroupID: "use", Args: cmdutil.ExactArgs(1),
		Long: `Read the server card that "card" of the definition names, a path or a URL, and show
the name, description, addresses and tools in it. usher does not connect to the server,
sends no credentials and follows no redirects.

A card proves nothing. Its tools are "announced" until the server was seen; then they
are "offered" or "missing". Pins are made of what the server itself lists.`,
		Example: `  usher card notes
  usher card notes --json | jq -r '.tools[].name'`,
		ValidArgsFunction: cmdutil.CompleteServers(f, 1),
		RunE: func(c *cobra.Command, args []string) error {
			o.server = args[0]
			return runF(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
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

func cardRun(ctx context.Context, o *cardOptions) error {
	f, server, asJSON := o.f, o.server, o.json
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	c, err := h.Catalog().Card(ctx, server)
	if err != nil {
		return err
	}
	if asJSON {
		return f.PrintJSON(cardShape(c))
	}
	showCard(f, c)
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

func showCard(f *cmdutil.Factory, c servercard.Card) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(f.IO.Out, "%-12s %s\n", name, cmdutil.FirstLine(text, 500))
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
		fmt.Fprintln(f.IO.Out)
		t := cmdutil.Table{Head: []string{"TOOL", "STATE", "DESCRIPTION"}}
		for _, tool := range c.Tools {
			t.Add(cmdutil.Clean(tool.Name), tool.State, cmdutil.FirstLine(tool.Description, 200))
		}
		t.Write(f.IO.Out, f.TableWidth())
	}
	if !c.Seen {
		f.Note("%s was not connected to yet: this is only what its card announces; next: usher tools %s", c.Server, c.Server)
	}
	if c.Left > 0 {
		f.Note("%s left out: without a usable name, or too many", cmdutil.CountOf(c.Left, "tool was", "tools were"))
	}
	if len(c.Others) > 0 {
		f.Note("%s has %s that the card does not announce", c.Server, cmdutil.CountOf(len(c.Others), "tool", "tools"))
	}
}
