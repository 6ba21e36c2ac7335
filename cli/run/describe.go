package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/jsonx"
)

type describeOptions struct {
	f            *cmdutil.Factory
	server, tool string
	json         bool
}

func newCmdDescribe(f *cmdutil.Factory, runF func(context.Context, *describeOptions) error) *cobra.Command {
	o := &describeOptions{f: f}
	if runF == nil {
		runF = describeRun
	}
	c := &cobra.Command{
		Use: "describe SERVER TOOL", Short: "Show a tool's description and arguments", GroupID: "use", Args: cmdutil.ExactArgs(2),
		Example: `  usher describe github search_issues
  usher describe github search_issues --json`,
		ValidArgsFunction: cmdutil.CompleteServers(f, 2),
		RunE: func(c *cobra.Command, args []string) error {
			o.server, o.tool = args[0], args[1]
			return runF(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "print the raw definition")
	return c
}

func describeRun(ctx context.Context, o *describeOptions) error {
	f := o.f
	h, err := f.Open(ctx)
	if err != nil {
		return err
	}
	tool, err := h.Tool(ctx, o.server, o.tool)
	if err != nil {
		return err
	}
	if o.json {
		_, err := fmt.Fprintf(f.IO.Out, "%s\n", tool.Definition)
		return err
	}
	d := tool.Definition
	fmt.Fprintf(f.IO.Out, "%s/%s", o.server, cmdutil.Clean(tool.Name))
	if title := jsonx.GetText(d, "title"); title != "" {
		fmt.Fprintf(f.IO.Out, "  %s", cmdutil.CleanLine(title))
	}
	if marks := toolMarks(tool); marks != "" {
		fmt.Fprintf(f.IO.Out, "  (%s)", marks)
	}
	fmt.Fprintln(f.IO.Out)
	if text := strings.TrimSpace(jsonx.GetText(d, "description")); text != "" {
		fmt.Fprintf(f.IO.Out, "\n%s\n", cmdutil.Indent(cmdutil.Clean(text), "  "))
	}
	if schema, ok := jsonx.Get(d, "inputSchema"); ok {
		describeSchema(f, "arguments", schema)
		fmt.Fprintf(f.IO.Out, "\ntry it\n  %s\n", exampleCall(o.server, tool.Name, schema))
	}
	if schema, ok := jsonx.Get(d, "outputSchema"); ok {
		describeSchema(f, "answers with", schema)
	}
	return nil
}

func describeSchema(f *cmdutil.Factory, head string, schema []byte) {
	rows := schemaRows(schema, "", 0)
	fmt.Fprintf(f.IO.Out, "\n%s\n", head)
	if len(rows) == 0 {
		fmt.Fprintln(f.IO.Out, "  none")
		return
	}
	name, kind := 0, 0
	for _, r := range rows {
		name, kind = max(name, cmdutil.TextWidth(r.name)), max(kind, min(cmdutil.TextWidth(r.kind), 40))
	}
	for _, r := range rows {
		line := fmt.Sprintf("  %s%s  %s%s  %s", r.name, pad(name-cmdutil.TextWidth(r.name)), r.kind, pad(kind-cmdutil.TextWidth(r.kind)), r.about)
		if f.IO.OutTTY {
			line = cmdutil.Truncate(line, f.IO.Width)
		}
		fmt.Fprintln(f.IO.Out, strings.TrimRight(line, " "))
	}
}

func pad(n int) string { return strings.Repeat(" ", max(0, n)) }

// schemaRow is one parameter as a line.
type schemaRow struct{ name, kind, about string }

// maxSchemaDepth is how deep nested objects are shown; --json shows everything.
const maxSchemaDepth = 3

// schemaRows flattens an object schema for reading. References are not followed.
func schemaRows(schema []byte, prefix string, depth int) []schemaRow {
	props, _ := jsonx.Get(schema, "properties")
	required := map[string]bool{}
	if list, ok := jsonx.Get(schema, "required"); ok {
		for e := jsonx.Array(list); e.Next(); {
			name, _ := jsonx.Text(e.Value)
			required[name] = true
		}
	}
	var rows []schemaRow
	for m := jsonx.Object(props); m.Next(); {
		name := prefix + cmdutil.Clean(string(m.Key))
		about := cmdutil.FirstLine(jsonx.GetText(m.Value, "description"), 160)
		if def, ok := jsonx.Get(m.Value, "default"); ok {
			about = strings.TrimSpace(about + " (default " + cmdutil.Clean(string(def)) + ")")
		}
		kind := schemaKind(m.Value)
		if !required[string(m.Key)] {
			kind += ", optional"
		}
		rows = append(rows, schemaRow{name, kind, about})
		if depth < maxSchemaDepth {
			rows = append(rows, schemaRows(m.Value, name+".", depth+1)...)
		}
	}
	return rows
}

// schemaKind says a parameter's type the way people do.
func schemaKind(schema []byte) string {
	if list, ok := jsonx.Get(schema, "enum"); ok {
		var values []string
		for e := jsonx.Array(list); e.Next(); {
			values = append(values, cmdutil.Clean(string(e.Value)))
		}
		return cmdutil.Truncate(strings.Join(values, " | "), 60)
	}
	kind, _ := jsonx.Get(schema, "type")
	text, isText := jsonx.Text(kind)
	if jsonx.TypeOf(kind) == "array" {
		var kinds []string
		for e := jsonx.Array(kind); e.Next(); {
			k, _ := jsonx.Text(e.Value)
			kinds = append(kinds, k)
		}
		text, isText = strings.Join(kinds, " or "), true
	}
	if text == "array" {
		if items, ok := jsonx.Get(schema, "items"); ok {
			return "list of " + schemaKind(items)
		}
		return "list"
	}
	if !isText || text == "" {
		return "any"
	}
	return cmdutil.Clean(text)
}

// exampleCall is a command line to start from: the required parameters filled in.
func exampleCall(server, tool string, schema []byte) string {
	words := []string{"usher", "call", server, cmdutil.ShellWord(tool)}
	if list, ok := jsonx.Get(schema, "required"); ok {
		for e := jsonx.Array(list); e.Next(); {
			name, _ := jsonx.Text(e.Value)
			prop, _ := jsonx.Path(schema, "properties", name)
			words = append(words, cmdutil.ShellWord(cmdutil.Clean(name)+"="+exampleValue(prop)))
		}
	}
	return strings.Join(words, " ")
}

func exampleValue(prop []byte) string {
	if list, ok := jsonx.Get(prop, "enum"); ok {
		for e := jsonx.Array(list); e.Next(); {
			if s, ok := jsonx.Text(e.Value); ok {
				return cmdutil.Clean(s)
			}
		}
	}
	switch jsonx.GetText(prop, "type") {
	case "integer", "number":
		return "1"
	case "boolean":
		return "true"
	case "array":
		return "[]"
	case "object":
		return "{}"
	}
	return "…"
}
