package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/app"
	"github.com/usher-mcp/usher/internal/jsonx"
)

type toolsOptions struct {
	f      *cmdutil.Factory
	server string
	tags   []string
	json   bool
}

func newCmdTools(f *cmdutil.Factory, runF func(context.Context, *toolsOptions) error) *cobra.Command {
	o := &toolsOptions{f: f}
	if runF == nil {
		runF = toolsRun
	}
	c := &cobra.Command{
		Use: "tools [SERVER]", Short: "List the tools of a server", GroupID: "use", Args: cmdutil.RangeArgs(0, 1),
		Long: `List the tools of a server, one line each. usher connects to the server if needed;
when it is unreachable, usher shows the cached tools and says so.

--tag lists the tools of every server with that tag, as SERVER/TOOL; with --json it
prints one object per server, with its tools or its error.`,
		Example: `  usher tools github
  usher tools linear@work
  usher tools --tag work
  usher tools github --json | jq '.[].name'`,
		ValidArgsFunction: cmdutil.CompleteServers(f, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == (len(o.tags) > 0) {
				return cmdutil.Usagef("usher tools SERVER, or usher tools --tag TAG", "%s needs a server or a tag", c.CommandPath())
			}
			if len(args) == 1 {
				o.server = args[0]
			}
			return runF(c.Context(), o)
		},
	}
	cmdutil.TagFlag(f, c, &o.tags)
	c.Flags().BoolVar(&o.json, "json", false, "print the definitions as a JSON array, each with its server and whether it changed")
	return c
}

func toolsRun(ctx context.Context, o *toolsOptions) error {
	if len(o.tags) > 0 {
		return toolsTagged(ctx, o.f, o)
	}
	f := o.f
	f.First = o.server
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	list, err := h.Tools(ctx, o.server)
	if err != nil {
		return err
	}
	staleNote(f, o.server, list)
	if o.json {
		raw := make([]json.RawMessage, len(list.Tools))
		for i, t := range list.Tools {
			raw[i] = markedDefinition(t)
		}
		return f.PrintJSON(raw)
	}
	if len(list.Tools) == 0 {
		f.Note("%s offers no tools", o.server)
		return nil
	}
	t := cmdutil.Table{Head: []string{"TOOL", "", "DESCRIPTION"}}
	for _, tool := range list.Tools {
		t.Add(cmdutil.Clean(tool.Name), toolMarks(tool), cmdutil.FirstLine(cmdutil.ToolSummary(tool.Definition), 200))
	}
	t.Write(f.IO.Out, f.TableWidth())
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
func toolsTagged(ctx context.Context, f *cmdutil.Factory, o *toolsOptions) error {
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	names, err := cmdutil.Tagged(h.Config(), o.tags, cmdutil.AnyServer)
	if err != nil {
		return err
	}
	out, failed := []taggedTools{}, false
	t := cmdutil.Table{Head: []string{"TOOL", "", "DESCRIPTION"}}
	for _, name := range names {
		list, err := h.Tools(ctx, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		row := taggedTools{Server: name, Stale: list.Stale}
		if err != nil {
			failed, row.Error = true, cmdutil.ExplainLine(f, err)
			f.Report(err)
		}
		staleNote(f, name, list)
		for _, tool := range list.Tools {
			row.Tools = append(row.Tools, markedDefinition(tool))
			t.Add(cmdutil.Clean(name+"/"+tool.Name), toolMarks(tool), cmdutil.FirstLine(cmdutil.ToolSummary(tool.Definition), 200))
		}
		out = append(out, row)
	}
	if !o.json {
		t.Write(f.IO.Out, f.TableWidth())
	} else if err := f.PrintJSON(out); err != nil {
		return err
	}
	if failed {
		return &cmdutil.SilentError{Code: cmdutil.ExitError}
	}
	return nil
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

// staleNote says that a list is only what was last known.
func staleNote(f *cmdutil.Factory, server string, list app.ToolList) {
	if !list.Stale {
		return
	}
	f.Note("usher: %s cannot be reached; these are its tools as of %s", server, list.At.Local().Format(time.DateTime))
	if list.Problem != nil {
		f.Note("  %s", cmdutil.Clean(cmdutil.ExplainLine(f, list.Problem)))
	}
}
