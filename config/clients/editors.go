package clients

import (
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
)

func readClaudeCode(e *entry) {
	readStandard(e)
	e.headersFrom("headersHelper")
	if o, ok := e.object("oauth"); ok {
		e.nestedOAuth(o)
		if v, ok := syntax.Text(o["authServerMetadataUrl"]); ok {
			e.oauth().MetadataURL = e.convert(v)
		}
		e.callbackPort(o["callbackPort"], "/callback")
	}
}

// nestedOAuth reads the keys that oauth objects have in common.
func (e *entry) nestedOAuth(o map[string]any) {
	for _, k := range []string{"clientId", "client_id", "CLIENT_ID"} {
		if v, ok := syntax.Text(o[k]); ok && v != "" {
			e.oauth().ClientID = e.convert(v)
		}
	}
	for _, k := range []string{"clientSecret", "client_secret", "CLIENT_SECRET"} {
		if v, ok := syntax.Text(o[k]); ok && v != "" {
			e.oauth().ClientSecret = e.convert(v)
		}
	}
	for _, k := range []string{"scopes", "scope"} {
		if list := e.convertAll(o[k]); len(list) > 0 {
			e.oauth().Scopes = list
		}
	}
	if v, ok := syntax.Text(o["redirectUri"]); ok && v != "" {
		e.oauth().RedirectURI = e.convert(v)
	}
}

// readClaudeProjects reads the servers that Claude Code keeps for this project
// alone; those of other projects are only mentioned.
func readClaudeProjects(r *reading) {
	projects, _ := r.tree["projects"].(map[string]any)
	for _, path := range sortedKeys(projects) {
		p, _ := projects[path].(map[string]any)
		list, ok := syntax.Lookup(p, []string{"mcpServers"})
		if !ok || len(list) == 0 {
			continue
		}
		if path == r.sys.Workdir || strings.HasPrefix(r.sys.Workdir, strings.TrimSuffix(path, "/")+"/") {
			r.list(list)
			continue
		}
		for _, name := range sortedKeys(list) {
			r.skip(name, "it belongs to the project "+path+"; run the import there")
		}
	}
}

func readCursor(e *entry) {
	readStandard(e)
	if o, ok := e.object("auth"); ok {
		e.nestedOAuth(o)
	}
	e.envFile()
}

// envFile is a file of variables that we do not read for a child.
func (e *entry) envFile() {
	if _, ok := e.keys["envFile"]; ok {
		e.note("envFile is not read; put its variables under env")
	}
}

func readVSCode(e *entry) {
	readStandard(e)
	if o, ok := e.object("oauth"); ok {
		e.nestedOAuth(o)
		if o["enterpriseManaged"] == true {
			e.oauth().Grant = config.GrantEnterprise
		}
	}
	e.envFile()
	for _, id := range e.commandInputs() {
		e.note("${input:%s} is answered by an extension of VS Code; set it with usher secret set %s", id, id)
	}
}

// commandInputs lists the inputs of this entry that only VS Code can answer.
func (e *entry) commandInputs() []string {
	var out []string
	inputs, _ := e.tree["inputs"].([]any)
	for _, v := range inputs {
		in, _ := v.(map[string]any)
		id, _ := in["id"].(string)
		if in["type"] == "command" && mentions(e.keys, "${input:"+id+"}") {
			out = append(out, id)
		}
	}
	return out
}

// readInputs reads the questions of a VS Code file.
func readInputs(r *reading) {
	inputs, _ := r.tree["inputs"].([]any)
	for _, v := range inputs {
		in, _ := v.(map[string]any)
		id, _ := in["id"].(string)
		if id == "" || in["type"] == "command" {
			continue
		}
		q := config.Input{ID: id, Options: texts(in["options"])}
		q.Description, _ = in["description"].(string)
		q.Default, _ = in["default"].(string)
		q.Password, _ = in["password"].(bool)
		r.found.Inputs = append(r.found.Inputs, q)
	}
	if _, ok := r.tree["sandbox"]; ok {
		r.skip("sandbox", "usher has no sandbox to put servers in")
	}
}

func readZed(e *entry) {
	_, hasCommand := e.keys["command"]
	_, hasURL := e.keys["url"]
	if !hasCommand && !hasURL {
		e.skip = "it comes from an extension of Zed"
		return
	}
	e.get("source") // says only that it is no extension
	readStandard(e)
	if o, ok := e.object("oauth"); ok {
		e.nestedOAuth(o)
	}
}

func readOpencode(e *entry) {
	e.transport()
	e.common()
	if env := e.dict("environment"); env != nil {
		e.s.Env = env
	}
	e.duration("timeout", time.Millisecond, &e.s.Timeouts.List)
	if v, ok := e.boolean("oauth"); ok && !v {
		// Without discovery and without endpoints no login can begin.
		e.oauth().Discovery.Mode = "off"
		return
	}
	if o, ok := e.object("oauth"); ok {
		e.nestedOAuth(o)
		e.callbackPort(o["callbackPort"], "/mcp/oauth/callback")
	}
}

// readOpencodeTools maps "tools": {"server_glob": false}.
func readOpencodeTools(r *reading) {
	tools, _ := r.tree["tools"].(map[string]any)
	for _, pattern := range sortedKeys(tools) {
		if tools[pattern] != false {
			continue
		}
		for i := range r.found.Servers {
			s := &r.found.Servers[i]
			if tool, ok := strings.CutPrefix(pattern, s.Original+"_"); ok && tool != "" {
				s.Server.Tools.Deny = append(s.Server.Tools.Deny, tool)
			}
		}
	}
}
