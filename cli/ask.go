package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/surface"
	"github.com/usher-mcp/usher/upstream"
)

// elicitation is what a person at a terminal can answer.
const elicitation = `{"elicitation":{"form":{},"url":{}}}`

// ask puts a server's question to the person: who asks, what, and field by field.
// An empty answer takes the default; anything but yes at the end declines.
func (a *factory) ask(ctx context.Context, server string, params []byte) []byte {
	if !a.io.InTTY {
		return upstream.CancelForm()
	}
	in := bufio.NewReader(a.io.In)
	a.note("%s asks: %s", server, clean(jsonx.GetText(params, "message")))
	if url := jsonx.GetText(params, "url"); url != "" {
		a.note("  it wants you to open this address; look at it first:\n  %s", clean(url))
		if a.agree(in, "done?") {
			return []byte(`{"action":"accept"}`)
		}
		return upstream.DeclineForm()
	}
	content := []byte("{}")
	schema, _ := jsonx.Get(params, "requestedSchema")
	props, _ := jsonx.Get(schema, "properties")
	for m := jsonx.Object(props); m.Next() && ctx.Err() == nil; {
		value, given := a.askField(in, string(m.Key), m.Value)
		if given {
			content = jsonx.Set(content, string(m.Key), value)
		}
	}
	if ctx.Err() != nil {
		return upstream.CancelForm()
	}
	if !a.agree(in, "send this to "+server+"?") {
		return upstream.DeclineForm()
	}
	return upstream.AcceptForm(params, content)
}

func (a *factory) askField(in *bufio.Reader, name string, prop []byte) ([]byte, bool) {
	label := clean(name)
	if title := jsonx.GetText(prop, "title"); title != "" {
		label = cleanLine(title)
	}
	if about := jsonx.GetText(prop, "description"); about != "" {
		a.note("  %s", cleanLine(about))
	}
	def, hasDefault := jsonx.Get(prop, "default")
	for {
		fmt.Fprintf(a.io.Err, "  %s (%s)", label, schemaKind(prop))
		if hasDefault {
			fmt.Fprintf(a.io.Err, " [%s]", clean(string(def)))
		}
		fmt.Fprint(a.io.Err, ": ")
		line, err := in.ReadString('\n')
		line = strings.TrimSpace(line)
		if line == "" || err != nil {
			return nil, false
		}
		value, want := surface.Argument(line, prop)
		if want == "" {
			return value, true
		}
		a.note("  that is not %s", want)
	}
}

func (a *factory) agree(in *bufio.Reader, question string) bool {
	fmt.Fprintf(a.io.Err, "  %s [y/N] ", question)
	line, _ := in.ReadString('\n')
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}
