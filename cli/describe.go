package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/usher-mcp/usher/internal/jsonx"
)

type describeOptions struct {
	server, tool string
	json         bool
}

func newCmdDescribe(a *factory) *cobra.Command {
	var o describeOptions
	c := &cobra.Command{
		Use: "describe SERVER TOOL", Short: "Show one tool: what it does and what it takes", GroupID: "use", Args: exactly(2),
		Example: `  usher describe github search_issues
  usher describe github search_issues --json`,
		ValidArgsFunction: a.completeServers(2),
		RunE: func(c *cobra.Command, args []string) error {
			o.server, o.tool = args[0], args[1]
			return a.describe(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "print the raw definition")
	return c
}

func (a *factory) describe(ctx context.Context, o describeOptions) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	tool, err := h.Tool(ctx, o.server, o.tool)
	if err != nil {
		return err
	}
	if o.json {
		_, err := fmt.Fprintf(a.io.Out, "%s\n", tool.Definition)
		return err
	}
	d := tool.Definition
	fmt.Fprintf(a.io.Out, "%s/%s", o.server, clean(tool.Name))
	if title := jsonx.GetText(d, "title"); title != "" {
		fmt.Fprintf(a.io.Out, "  %s", cleanLine(title))
	}
	if marks := toolMarks(tool); marks != "" {
		fmt.Fprintf(a.io.Out, "  (%s)", marks)
	}
	fmt.Fprintln(a.io.Out)
	if text := strings.TrimSpace(jsonx.GetText(d, "description")); text != "" {
		fmt.Fprintf(a.io.Out, "\n%s\n", indent(clean(text), "  "))
	}
	if schema, ok := jsonx.Get(d, "inputSchema"); ok {
		a.describeSchema("arguments", schema)
		fmt.Fprintf(a.io.Out, "\ntry it\n  %s\n", exampleCall(o.server, tool.Name, schema))
	}
	if schema, ok := jsonx.Get(d, "outputSchema"); ok {
		a.describeSchema("answers with", schema)
	}
	return nil
}

func (a *factory) describeSchema(head string, schema []byte) {
	rows := schemaRows(schema, "", 0)
	fmt.Fprintf(a.io.Out, "\n%s\n", head)
	if len(rows) == 0 {
		fmt.Fprintln(a.io.Out, "  none")
		return
	}
	name, kind := 0, 0
	for _, r := range rows {
		name, kind = max(name, columns(r.name)), max(kind, min(columns(r.kind), 40))
	}
	for _, r := range rows {
		line := fmt.Sprintf("  %s%s  %s%s  %s", r.name, pad(name-columns(r.name)), r.kind, pad(kind-columns(r.kind)), r.about)
		if a.io.OutTTY {
			line = cut(line, a.io.Width)
		}
		fmt.Fprintln(a.io.Out, strings.TrimRight(line, " "))
	}
}

func pad(n int) string { return strings.Repeat(" ", max(0, n)) }

func indent(text, by string) string {
	return by + strings.ReplaceAll(text, "\n", "\n"+by)
}

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
		name := prefix + clean(string(m.Key))
		about := firstLine(jsonx.GetText(m.Value, "description"), 160)
		if def, ok := jsonx.Get(m.Value, "default"); ok {
			about = strings.TrimSpace(about + " (default " + clean(string(def)) + ")")
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
			values = append(values, clean(string(e.Value)))
		}
		return cut(strings.Join(values, " | "), 60)
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
	return clean(text)
}

// exampleCall is a command line to start from: the required parameters filled in.
func exampleCall(server, tool string, schema []byte) string {
	words := []string{"usher", "call", server, shellWord(tool)}
	if list, ok := jsonx.Get(schema, "required"); ok {
		for e := jsonx.Array(list); e.Next(); {
			name, _ := jsonx.Text(e.Value)
			prop, _ := jsonx.Path(schema, "properties", name)
			words = append(words, shellWord(clean(name)+"="+exampleValue(prop)))
		}
	}
	return strings.Join(words, " ")
}

func exampleValue(prop []byte) string {
	if list, ok := jsonx.Get(prop, "enum"); ok {
		for e := jsonx.Array(list); e.Next(); {
			if s, ok := jsonx.Text(e.Value); ok {
				return clean(s)
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

// shellWord quotes a word for a POSIX shell where it needs to be.
func shellWord(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@…,", r)
	}) < 0
	if plain && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
