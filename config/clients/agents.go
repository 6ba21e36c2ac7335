package clients

import (
	"slices"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
	"github.com/usher-mcp/usher/config/template"
)

func readCopilot(e *entry) {
	e.transport()
	e.common()
	e.duration("timeout", time.Millisecond, &e.s.Timeouts.Call)
	e.starTools("tools")
	if o, ok := e.object("oauth"); ok {
		e.nestedOAuth(o)
		e.callbackPort(o["callbackPort"], "/")
	}
	if id := e.str("oauthClientId"); id != "" {
		e.oauth().ClientID = id
	}
	if o, ok := e.object("auth"); ok {
		e.callbackPort(o["redirectPort"], "/")
	}
}

// readCodex reads an entry of config.toml. Codex expands nothing; what comes
// from the environment is named in keys of its own.
func readCodex(e *entry) {
	e.common()
	for _, v := range listOf(e.get("env_vars")) {
		name, ok := v.(string)
		if m, isTable := v.(map[string]any); isTable {
			name, ok = m["name"].(string)
			if source, _ := m["source"].(string); source != "" && source != "local" {
				e.note("env_vars: %s comes from %s with Codex; usher takes it from its own environment", name, source)
			}
		}
		if ok {
			e.setEnv(name, envPlaceholder(name))
		}
	}
	e.duration("startup_timeout_sec", time.Second, &e.s.Timeouts.Connect)
	e.duration("startup_timeout_ms", time.Millisecond, &e.s.Timeouts.Connect)
	e.duration("tool_timeout_sec", time.Second, &e.s.Timeouts.Call)
	e.toolLists("enabled_tools", "disabled_tools")
	e.codexHeaders()
	e.codexOAuth()
}

func listOf(v any, _ bool) []any {
	list, _ := v.([]any)
	return list
}

func (e *entry) codexHeaders() {
	if h := e.dict("http_headers"); h != nil {
		e.s.Headers = h
	}
	fromEnv, _ := e.object("env_http_headers")
	for _, header := range sortedKeys(fromEnv) {
		if name, ok := syntax.Text(fromEnv[header]); ok {
			e.setHeader(header, envPlaceholder(name))
		}
	}
	if name := e.plain("bearer_token_env_var"); name != "" {
		e.setHeader("Authorization", "Bearer "+envPlaceholder(name))
	}
	if token := e.plain("bearer_token"); token != "" {
		e.setHeader("Authorization", "Bearer "+template.Escape(token))
	}
	e.headersFrom("http_headers_helper")
}

func (e *entry) codexOAuth() {
	if e.s.URL == "" {
		return
	}
	if scopes := e.strs("scopes"); len(scopes) > 0 {
		e.oauth().Scopes = scopes
	}
	if r := e.str("oauth_resource"); r != "" {
		e.oauth().Resource = r
	}
	port, hasPort := e.tree["mcp_oauth_callback_port"]
	if o, ok := e.object("oauth"); ok {
		e.nestedOAuth(o)
		if p, own := o["callback_port"]; own {
			port, hasPort = p, true
		}
	}
	if u, ok := e.tree["mcp_oauth_callback_url"].(string); ok && e.s.OAuth != nil && e.s.OAuth.ClientID != "" {
		e.s.OAuth.RedirectURI = template.Escape(u)
	}
	if hasPort {
		e.callbackPort(port, "/callback")
	}
	if auth := e.plain("auth"); auth == "chatgpt" {
		e.keep("auth")
		e.note("Codex logs in to it with a ChatGPT account, which usher cannot")
	}
}

func readGemini(e *entry) {
	e.transport()
	if _, ok := e.keys["tcp"]; ok {
		e.skip = "it is reached through a WebSocket, which usher cannot do"
		return
	}
	_, streamable := e.keys["httpUrl"]
	e.common()
	if env, ok := e.object("env"); ok && e.s.Env != nil {
		for k, v := range env { // env alone knows %VAR%
			if s, ok := syntax.Text(v); ok {
				e.s.Env[k] = percentDialect(e.reading, s)
			}
		}
	}
	if e.s.Transport == "" && e.s.URL != "" && !streamable {
		e.s.Transport = config.TransportSSE
		e.note("a bare url means SSE to Gemini; remove type if the server speaks Streamable HTTP")
	}
	e.duration("timeout", time.Millisecond, &e.s.Timeouts.Call)
	e.toolLists("includeTools", "excludeTools")
	o, ok := e.object("oauth")
	if !ok || o["enabled"] == false {
		return
	}
	e.nestedOAuth(o)
	for key, p := range map[string]func() *string{
		"authorizationUrl": func() *string { return &e.oauth().AuthorizationEndpoint },
		"tokenUrl":         func() *string { return &e.oauth().TokenEndpoint },
		"issuer":           func() *string { return &e.oauth().Issuer },
	} {
		if v, ok := syntax.Text(o[key]); ok && v != "" {
			*p() = e.convert(v)
		}
	}
	if list := e.convertAll(o["audiences"]); len(list) > 0 {
		e.oauth().Audience = list[0]
	}
}

// readGeminiLists applies mcp.allowed and mcp.excluded.
func readGeminiLists(r *reading) {
	mcp, _ := r.tree["mcp"].(map[string]any)
	allowed, excluded := texts(mcp["allowed"]), texts(mcp["excluded"])
	for i := range r.found.Servers {
		s := &r.found.Servers[i]
		if slices.Contains(excluded, s.Original) || len(allowed) > 0 && !slices.Contains(allowed, s.Original) {
			s.Server.Disabled = true
			s.Notes = append(s.Notes, "disabled by the mcp lists of Gemini")
		}
	}
}

// readGoose reads an extension of goose. Only some are MCP servers.
func readGoose(e *entry) {
	kind := e.plain("type")
	switch kind {
	case "stdio", "streamable_http":
		e.s.Transport, _ = config.ParseTransport(kind)
	case "sse":
		e.skip = "goose no longer speaks SSE; add it by hand if it is alive"
		return
	default:
		e.skip = "its type " + config.Visible(kind) + " lives inside goose"
		return
	}
	if bundled, _ := e.boolean("bundled"); bundled {
		e.skip = "it is part of goose"
		return
	}
	if e.plain("name") != e.name {
		e.keep("name")
	}
	e.common()
	literals := e.dict("envs")
	secrets := e.plainStrs("env_keys")
	for _, k := range secrets {
		e.note("the value of %s sits in goose's keyring; usher secret set %s", k, k)
	}
	e.duration("timeout", time.Second, &e.s.Timeouts.Call)
	e.s.Tools.Allow = globs(e.plainStrs("available_tools"))
	if e.s.Transport == config.TransportStdio {
		e.s.Env = literals
		for _, k := range secrets {
			e.setEnv(k, "${secret:"+k+"}")
		}
		return
	}
	headers, _ := e.object("headers")
	for _, k := range sortedKeys(headers) {
		if s, ok := syntax.Text(headers[k]); ok {
			e.setHeader(k, gooseHeader(s, literals, secrets))
		}
	}
}

// gooseHeader fills in $VAR and ${VAR}, which goose does in headers, from the
// variables of the extension alone.
func gooseHeader(s string, literals map[string]string, secrets []string) string {
	return rewrite(s, dollarVariable, func(g []string) (string, bool) {
		name := g[1] + g[3]
		if v, ok := literals[name]; ok {
			return v, true
		}
		return "${secret:" + name + "}", slices.Contains(secrets, name)
	})
}
