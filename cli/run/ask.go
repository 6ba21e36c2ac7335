package run

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/internal/argument"
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/upstream"
)

// ask puts a server's question to the person: who asks, what, and field by field.
// An empty answer takes the default; anything but yes at the end declines.
func ask(ctx context.Context, f *cmdutil.Factory, server string, params []byte) []byte {
	if !f.IO.InTTY {
		return upstream.CancelForm()
	}
	in := bufio.NewReader(f.IO.In)
	f.Note("%s asks: %s", server, cmdutil.Clean(jsonx.GetText(params, "message")))
	if url := jsonx.GetText(params, "url"); url != "" {
		f.Note("  it wants you to open this address; look at it first:\n  %s", cmdutil.Clean(url))
		if agree(f, in, "done?") {
			return []byte(`{"action":"accept"}`)
		}
		return upstream.DeclineForm()
	}
	content := []byte("{}")
	schema, _ := jsonx.Get(params, "requestedSchema")
	props, _ := jsonx.Get(schema, "properties")
	for m := jsonx.Object(props); m.Next() && ctx.Err() == nil; {
		value, given := askField(f, in, string(m.Key), m.Value)
		if given {
			content = jsonx.Set(content, string(m.Key), value)
		}
	}
	if ctx.Err() != nil {
		return upstream.CancelForm()
	}
	if !agree(f, in, "send this to "+server+"?") {
		return upstream.DeclineForm()
	}
	return upstream.AcceptForm(params, content)
}

func askField(f *cmdutil.Factory, in *bufio.Reader, name string, prop []byte) ([]byte, bool) {
	label := cmdutil.Clean(name)
	if title := jsonx.GetText(prop, "title"); title != "" {
		label = cmdutil.CleanLine(title)
	}
	if about := jsonx.GetText(prop, "description"); about != "" {
		f.Note("  %s", cmdutil.CleanLine(about))
	}
	def, hasDefault := jsonx.Get(prop, "default")
	for {
		fmt.Fprintf(f.IO.Err, "  %s (%s)", label, schemaKind(prop))
		if hasDefault {
			fmt.Fprintf(f.IO.Err, " [%s]", cmdutil.Clean(string(def)))
		}
		fmt.Fprint(f.IO.Err, ": ")
		line, err := in.ReadString('\n')
		line = strings.TrimSpace(line)
		if line == "" || err != nil {
			return nil, false
		}
		value, want := argument.Parse(line, prop)
		if want == "" {
			return value, true
		}
		f.Note("  that is not %s", want)
	}
}

func agree(f *cmdutil.Factory, in *bufio.Reader, question string) bool {
	fmt.Fprintf(f.IO.Err, "  %s [y/N] ", question)
	line, _ := in.ReadString('\n')
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}
