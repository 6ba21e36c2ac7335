package clients

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
	"github.com/usher-mcp/usher/config/template"
)

// readStandard reads an entry of the usual shape, with the spellings that
// clients have in common.
func readStandard(e *entry) {
	e.transport()
	e.common()
	e.duration("timeout", timeoutUnit(e.client.name), &e.s.Timeouts.Call)
}

// timeoutUnit is what a bare number means.
func timeoutUnit(client string) time.Duration {
	switch client {
	case "cline", "roo", "crush", "zed":
		return time.Second
	}
	return time.Millisecond
}

// common reads what nearly all shapes share.
func (e *entry) common() {
	e.command()
	if env := e.dict("env"); env != nil {
		e.s.Env = env
	}
	e.s.Cwd = e.workingDirectory(e.str("cwd"))
	e.s.URL = e.str("url", "serverUrl", "httpUrl", "uri")
	if e.s.URL != "" && strings.HasPrefix(e.s.URL, "unix:") {
		e.skip = "it is reached through a unix socket, which usher cannot do"
	}
	e.s.Headers = e.dict("headers")
	if e.s.URL != "" && e.s.Command == "" && len(e.s.Env) > 0 {
		e.used["env"] = false
		e.s.Env = nil
	}
	if v, ok := e.boolean("disabled"); ok {
		e.s.Disabled = v
	}
	if v, ok := e.boolean("enabled"); ok {
		e.s.Disabled = !v
	}
	e.s.Tools.Deny = append(e.s.Tools.Deny, globs(e.plainStrs("disabledTools"))...)
}

// workingDirectory makes a relative directory independent of where the entry
// will stand. In a user's file it is relative to wherever the client runs.
func (e *entry) workingDirectory(dir string) string {
	switch {
	case dir == "", filepath.IsAbs(dir), strings.HasPrefix(dir, "~"), strings.HasPrefix(dir, "${"):
		return dir
	case e.project == "" && filepath.Clean(dir) == ".":
		return ""
	}
	abs := filepath.Join(template.Escape(e.workspace()), dir)
	if e.project == "" {
		e.note("cwd %s is relative to where %s runs; it was fixed to %s", dir, e.client.title, abs)
	}
	return abs
}

// plainStrs returns a list as it is written.
func (e *entry) plainStrs(keys ...string) []string {
	v, _ := e.get(keys...)
	return texts(v)
}

// globs makes patterns that match exactly these names.
func globs(names []string) []string {
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
	var out []string
	for _, n := range names {
		out = append(out, escape.Replace(n))
	}
	return out
}

// transport reads the tag; without one the transport follows from the keys.
func (e *entry) transport() {
	kind := e.plain("type", "transport")
	if kind == "" {
		return
	}
	t, ok := config.ParseTransport(kind)
	if !ok {
		e.skip = "its type " + config.Visible(kind) + " is not one usher speaks"
		return
	}
	e.s.Transport = t
}

// command reads a program as a string with args, as a list, or as an object
// with path, args and env, as Zed once wrote it.
func (e *entry) command() {
	v, _ := e.get("command", "cmd")
	switch t := v.(type) {
	case string:
		e.s.Command = e.convert(t)
	case []any:
		if words := e.convertAll(t); len(words) > 0 {
			e.s.Command, e.s.Args = words[0], words[1:]
		}
	case map[string]any:
		path, _ := syntax.Text(t["path"])
		e.s.Command = e.convert(path)
		e.s.Args = e.convertAll(t["args"])
		e.s.Env = e.convertDict(t["env"])
	}
	e.s.Args = append(e.s.Args, e.strs("args")...)
}

// toolLists maps an allow and a deny list of exact names.
func (e *entry) toolLists(allow, deny string) {
	e.s.Tools.Allow = globs(e.plainStrs(allow))
	e.s.Tools.Deny = append(e.s.Tools.Deny, globs(e.plainStrs(deny))...)
}

// starTools reads a list of tools in which "*" stands for all.
func (e *entry) starTools(key string) {
	names := e.plainStrs(key)
	if !slices.Contains(names, "*") {
		e.s.Tools.Allow = globs(names)
	}
}
