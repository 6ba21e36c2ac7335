package clients

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
	"github.com/usher-mcp/usher/config/template"
)

// Export writes servers in the shape of a client's file and returns the text
// of such a file, with what the client cannot say. Placeholders are put into
// the client's dialect; nothing is resolved. Broken servers are left out.
func Export(name string, servers []config.Server) (text []byte, notes []string, err error) {
	c, ok := byClient(name)
	if !ok {
		return nil, nil, unknownClient(name)
	}
	x := &exporting{client: c}
	var list syntax.Object
	for _, s := range servers {
		x.server = s.Name
		switch {
		case s.Problem != nil:
			x.note("left out: %v", s.Problem)
			continue
		case s.Command == "" && s.URL == "":
			x.note("left out: it has neither command nor url")
			continue
		}
		if e := x.entry(s); e != nil {
			list.Set(s.Name, e)
		}
	}
	root := x.client.location().Nest(list)
	if c.wrap != nil {
		root = c.wrap(x, root)
	}
	switch c.format {
	case syntax.TOML:
		text, err = syntax.EncodeTOML(root)
	case syntax.YAML:
		text, err = syntax.EncodeYAML(root)
	default:
		text, err = syntax.EncodeJSON(root)
	}
	return text, x.notes, err
}

// exporting is a file while it is being made.
type exporting struct {
	client client
	server string // the one at hand, for notes
	notes  []string
	inputs []config.Input
}

func (x *exporting) note(format string, args ...any) {
	note := x.server + ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(x.notes, note) {
		x.notes = append(x.notes, note)
	}
}

// entry writes one server and restores what its own file had said beside.
func (x *exporting) entry(s config.Server) syntax.Object {
	out := x.client.write(x, s)
	if out == nil || s.Foreign == nil || s.Foreign.Client != x.client.name {
		return out
	}
	for _, k := range sortedKeys(s.Foreign.Keys) {
		if !out.Has(k) {
			out.Set(k, s.Foreign.Keys[k])
		}
	}
	return out
}

// say puts a template into the client's dialect.
func (x *exporting) say(value string) string {
	parts, err := template.Parse(value)
	if err != nil {
		return value
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Placeholder != nil {
			b.WriteString(x.placeholder(*p.Placeholder))
			continue
		}
		if x.client.dialect(&reading{client: x.client}, p.Text) != template.Escape(p.Text) {
			x.note("%s would expand %s, which is meant literally", x.client.title, config.Visible(template.MaskArgs([]string{p.Text})[0]))
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// placeholder says one placeholder in the client's words. A secret of ours
// becomes a variable of the environment that the person has to set.
func (x *exporting) placeholder(p template.Placeholder) string {
	name := p.Name
	switch p.Kind {
	case template.Secret, template.Input:
		if x.client.name == "vscode" {
			return x.ask(p)
		}
		name = variableName(p.Name)
		x.note("%s cannot read usher's secrets; %s stands for %s there", x.client.title, name, p.Name)
		p.HasDefault = false
	case template.File:
		if x.client.name == "opencode" {
			return "{file:" + p.Name + "}"
		}
		if x.client.name == "windsurf" {
			return "${file:" + p.Name + "}"
		}
		fallthrough
	case template.Command:
		if x.client.name == "crush" && p.Kind == template.Command {
			return "$(" + p.Name + ")"
		}
		x.note("%s cannot say %s; fill it in by hand", x.client.title, p)
		return p.Raw
	}
	text, withDefault := x.variable(name, p)
	if p.HasDefault && !withDefault {
		x.note("%s knows no defaults; %s must be set", x.client.title, name)
	}
	return text
}

// variable writes a variable of the environment, and reports whether its
// default is in it.
func (x *exporting) variable(name string, p template.Placeholder) (string, bool) {
	switch x.client.name {
	case "claude-code", "kiro", "factory", "amp", "mcp", "gemini", "copilot", "crush":
		if p.HasDefault {
			return "${" + name + ":-" + x.say(p.Default) + "}", true
		}
		return "${" + name + "}", false
	case "cursor", "vscode", "windsurf", "roo":
		return "${env:" + name + "}", false
	case "opencode":
		return "{env:" + name + "}", false
	case "continue":
		return "${{ secrets." + name + " }}", false
	}
	x.note("%s expands nothing; put the value of %s in place of its placeholder", x.client.title, name)
	return "${" + name + "}", true
}

// ask turns a secret into a question that VS Code asks.
func (x *exporting) ask(p template.Placeholder) string {
	id := strings.NewReplacer("/", "-", "@", "-").Replace(p.Name)
	if !slices.ContainsFunc(x.inputs, func(in config.Input) bool { return in.ID == id }) {
		x.inputs = append(x.inputs, config.Input{ID: id, Description: p.Name, Password: true})
	}
	return "${input:" + id + "}"
}

// variableName makes a variable's name out of a secret's.
func variableName(secret string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, secret)
}

func (x *exporting) sayAll(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, x.say(s))
	}
	return out
}

func (x *exporting) sayDict(m map[string]string) map[string]string {
	out := map[string]string{}
	for _, k := range sortedKeys(m) { // in order, for the notes
		out[k] = x.say(m[k])
	}
	return out
}

// unsaid notes options that the client has no words for.
func (x *exporting) unsaid(s config.Server) {
	if s.HeadersFrom != "" {
		x.note("%s has no headers from a command", x.client.title)
	}
	if len(s.Tools.Rename) > 0 {
		x.note("%s cannot rename tools", x.client.title)
	}
	allows := slices.Contains([]string{"codex", "gemini", "copilot", "goose"}, x.client.name)
	denies := slices.Contains([]string{"codex", "gemini", "windsurf"}, x.client.name)
	if len(s.Tools.Allow) > 0 && !allows || len(s.Tools.Deny) > 0 && !denies {
		x.note("%s cannot hide all of these tools; they are shown there", x.client.title)
	}
}

// port is the port of a redirect address on this machine, or 0.
func port(redirect string) int {
	u, err := url.Parse(redirect)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(u.Port()) // no port is 0
	return n
}
