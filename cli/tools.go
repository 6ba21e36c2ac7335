package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/jsonx"
)

type toolsOptions struct {
	server string
	tags   []string
	json   bool
}

func newCmdTools(a *factory) *cobra.Command {
	var o toolsOptions
	c := &cobra.Command{
		Use: "tools [SERVER]", Short: "List the tools of a server", GroupID: "use", Args: between(0, 1),
		Long: `List the tools of a server, one line each. The server is connected to if need be;
when it cannot be reached, the last known tools are shown and marked as such.

With --tag the tools of every server with that tag are listed, as SERVER/TOOL; with
--json they are one object a server, with its tools or with its error.`,
		Example: `  usher tools github
  usher tools linear@work
  usher tools --tag work
  usher tools github --json | jq '.[].name'`,
		ValidArgsFunction: a.completeServers(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case (len(args) == 1) == (len(o.tags) > 0):
				return usagef("usher tools SERVER, or usher tools --tag TAG", "%s needs a server or a tag", c.CommandPath())
			case len(args) == 0:
				return a.toolsTagged(c.Context(), o)
			}
			o.server = args[0]
			return a.tools(c.Context(), o)
		},
	}
	a.tagFlag(c, &o.tags)
	c.Flags().BoolVar(&o.json, "json", false, "print the definitions as a JSON array, each with its server and whether it changed")
	return c
}

func (a *factory) tools(ctx context.Context, o toolsOptions) error {
	a.first = o.server
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	list, err := h.Tools(ctx, o.server)
	if err != nil {
		return err
	}
	a.staleNote(o.server, list)
	if o.json {
		raw := make([]json.RawMessage, len(list.Tools))
		for i, t := range list.Tools {
			raw[i] = markedDefinition(t)
		}
		return a.printJSON(raw)
	}
	if len(list.Tools) == 0 {
		a.note("%s offers no tools", o.server)
		return nil
	}
	t := table{head: []string{"TOOL", "", "DESCRIPTION"}}
	for _, tool := range list.Tools {
		t.add(clean(tool.Name), toolMarks(tool), firstLine(toolSummary(tool.Definition), 200))
	}
	t.write(a.io.Out, a.tableWidth())
	return nil
}

// markedDefinition is the definition of a tool with what usher knows about it. Members
// of the server with the same names are left out: they could be taken for ours.
func markedDefinition(t app.Tool) []byte {
	name := t.Server
	if t.Account != "" {
		name += "@" + t.Account
	}
	out := jsonx.AppendText([]byte(`{"server":`), name)
	if t.SchemaChanged {
		out = append(out, `,"schema_changed":true`...)
	}
	if t.Blocked {
		out = append(out, `,"blocked":true`...)
	}
	for m := jsonx.Object(t.Definition); m.Next(); {
		switch key := string(m.Key); key {
		case "server", "schema_changed", "blocked":
		default:
			out = append(jsonx.AppendText(append(out, ','), key), ':')
			out = append(out, m.Value...)
		}
	}
	return append(out, '}')
}

// taggedTools is what one server with a tag offers, with --json.
type taggedTools struct {
	Server string            `json:"server"`
	Tools  []json.RawMessage `json:"tools,omitempty"`
	Stale  bool              `json:"stale,omitempty"`
	Error  string            `json:"error,omitempty"`
}

// toolsTagged lists the tools of the servers with a tag, one server after another.
func (a *factory) toolsTagged(ctx context.Context, o toolsOptions) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	names, err := tagged(h.Config(), o.tags, anyServer)
	if err != nil {
		return err
	}
	out, failed := []taggedTools{}, false
	t := table{head: []string{"TOOL", "", "DESCRIPTION"}}
	for _, name := range names {
		list, err := h.Tools(ctx, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		row := taggedTools{Server: name, Stale: list.Stale}
		if err != nil {
			failed, row.Error = true, a.explained(err)
			a.report(err)
		}
		a.staleNote(name, list)
		for _, tool := range list.Tools {
			row.Tools = append(row.Tools, markedDefinition(tool))
			t.add(clean(name+"/"+tool.Name), toolMarks(tool), firstLine(toolSummary(tool.Definition), 200))
		}
		out = append(out, row)
	}
	if !o.json {
		t.write(a.io.Out, a.tableWidth())
	} else if err := a.printJSON(out); err != nil {
		return err
	}
	if failed {
		return &silent{exitError}
	}
	return nil
}

// tableWidth is where tables are cut: only on a terminal.
func (a *factory) tableWidth() int {
	if a.io.OutTTY {
		return a.io.Width
	}
	return 0
}

// toolMarks says in a word or two what to know before calling.
func toolMarks(t app.Tool) string {
	hints, _ := jsonx.Get(t.Definition, "annotations")
	is := func(key string) bool { v, _ := jsonx.Get(hints, key); return string(v) == "true" }
	switch {
	case t.SchemaChanged:
		return "changed"
	case is("readOnlyHint"):
		return "reads"
	case is("destructiveHint"):
		return "destroys"
	}
	return ""
}

func toolSummary(def []byte) string {
	if d := jsonx.GetText(def, "description"); d != "" {
		return d
	}
	return jsonx.GetText(def, "title")
}

// staleNote says that a list is only what was last known.
func (a *factory) staleNote(server string, list app.ToolList) {
	if !list.Stale {
		return
	}
	a.note("usher: %s cannot be reached; these are its tools as of %s", server, list.At.Local().Format(time.DateTime))
	if list.Problem != nil {
		a.note("  %s", clean(a.explained(list.Problem)))
	}
}
