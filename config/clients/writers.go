package clients

import (
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/template"
)

// base writes what most shapes share: the command with its parts, or the
// address under urlKey.
func (x *exporting) base(s config.Server, urlKey string) object {
	var o object
	if s.URL == "" {
		o.add("command", x.say(s.Command))
		o.add("args", x.sayAll(s.Args))
		o.add("env", x.sayDict(s.Env))
		o.add("cwd", x.say(s.Cwd))
		return o
	}
	o.add(urlKey, x.say(s.URL))
	o.add("headers", x.sayDict(s.Headers))
	return o
}

// typed puts the transport in front.
func typed(s config.Server, stdio string, o object) object {
	kind := string(s.Transport)
	if s.URL == "" {
		kind = stdio
	}
	return append(object{{"type", kind}}, o...)
}

// writeStandard writes the usual shape.
func writeStandard(x *exporting, s config.Server) object { return writeAs("type", "http", "url")(x, s) }

// writeAs writes the usual shape with the client's own words: the key of the
// transport, the transport of today over HTTP, and the key of the address. No
// key of the transport means that it follows from the others.
func writeAs(tag, streamable, urlKey string) func(*exporting, config.Server) object {
	return func(x *exporting, s config.Server) object {
		x.unsaid(s)
		o := x.base(s, urlKey)
		if tag != "" {
			kind := string(s.Transport)
			if s.URL == "" {
				kind = "stdio"
			} else if s.Transport == config.TransportHTTP {
				kind = streamable
			}
			o = append(object{{tag, kind}}, o...)
		}
		o.add("disabled", s.Disabled)
		return o
	}
}

func writeClaude(x *exporting, s config.Server) object {
	if s.Disabled {
		x.note("left out: Claude Desktop cannot disable a server")
		return nil
	}
	x.unsaid(s)
	if s.URL == "" {
		return x.base(s, "url")
	}
	// It starts commands only; mcp-remote is the usual bridge.
	args := []string{"-y", "mcp-remote", x.say(s.URL)}
	for _, k := range sortedKeys(s.Headers) {
		args = append(args, "--header", k+":"+x.say(s.Headers[k]))
	}
	if s.Transport == config.TransportSSE {
		args = append(args, "--transport", "sse-only")
	}
	var o object
	o.add("command", "npx")
	o.add("args", args)
	return o
}

func writeClaudeCode(x *exporting, s config.Server) object {
	if s.Disabled {
		x.note("left out: Claude Code cannot disable a server")
		return nil
	}
	o := typed(s, "stdio", x.base(s, "url"))
	if p, err := template.Placeholders(s.HeadersFrom); err == nil && len(p) == 1 && p[0].Kind == template.Command {
		o.add("headersHelper", p[0].Name)
		s.HeadersFrom = ""
	}
	x.unsaid(s)
	if a := s.OAuth; a != nil {
		var oauth object
		oauth.add("clientId", x.say(a.ClientID))
		if n := port(a.RedirectURI); n > 0 {
			oauth.add("callbackPort", n)
		}
		oauth.add("authServerMetadataUrl", x.say(a.MetadataURL))
		oauth.add("scopes", strings.Join(x.sayAll(a.Scopes), " "))
		o.add("oauth", oauth)
	}
	return o
}

func writeCursor(x *exporting, s config.Server) object {
	if s.Disabled {
		x.note("left out: Cursor disables servers in its settings, not in the file")
		return nil
	}
	x.unsaid(s)
	o := x.base(s, "url")
	if a := s.OAuth; a != nil {
		var auth object
		auth.add("CLIENT_ID", x.say(a.ClientID))
		auth.add("CLIENT_SECRET", x.say(a.ClientSecret))
		auth.add("scopes", x.sayAll(a.Scopes))
		o.add("auth", auth)
	}
	return o
}

func writeVSCode(x *exporting, s config.Server) object {
	if s.Disabled {
		x.note("left out: VS Code disables servers in its settings, not in the file")
		return nil
	}
	x.unsaid(s)
	o := typed(s, "stdio", x.base(s, "url"))
	if a := s.OAuth; a != nil && a.ClientID != "" {
		var oauth object
		oauth.add("clientId", x.say(a.ClientID))
		o.add("oauth", oauth)
	}
	return o
}

// wrapVSCode puts the questions in front of the servers.
func wrapVSCode(x *exporting, root object) object {
	var inputs []object
	for _, in := range x.inputs {
		inputs = append(inputs, object{{"type", "promptString"}, {"id", in.ID}, {"description", in.Description}, {"password", true}})
	}
	if len(inputs) == 0 {
		return root
	}
	return append(object{{"inputs", inputs}}, root...)
}

func writeWindsurf(x *exporting, s config.Server) object {
	x.unsaid(s)
	o := x.base(s, "serverUrl")
	o.add("disabled", s.Disabled)
	o.add("disabledTools", s.Tools.Deny)
	return o
}

func writeCopilot(x *exporting, s config.Server) object {
	if s.Disabled {
		x.note("left out: Copilot cannot disable a server in the file")
		return nil
	}
	x.unsaid(s)
	o := typed(s, "local", x.base(s, "url"))
	tools := s.Tools.Allow
	if len(tools) == 0 {
		tools = []string{"*"}
	}
	o.add("tools", tools)
	if a := s.OAuth; a != nil {
		o.add("oauthClientId", x.say(a.ClientID))
		if n := port(a.RedirectURI); n > 0 {
			o.add("auth", object{{"redirectPort", n}})
		}
	}
	return o
}

func writeGemini(x *exporting, s config.Server) object {
	x.unsaid(s)
	if s.Disabled {
		x.note("add it to mcp.excluded, or Gemini will start it")
	}
	o := x.base(s, "url")
	if s.URL != "" {
		o.add("type", string(s.Transport))
	}
	if s.Timeouts.Call != config.DefaultCallTimeout && s.Timeouts.Call > 0 {
		o.add("timeout", s.Timeouts.Call.Milliseconds())
	}
	o.add("includeTools", s.Tools.Allow)
	o.add("excludeTools", s.Tools.Deny)
	if a := s.OAuth; a != nil {
		oauth := object{{"enabled", true}}
		oauth.add("clientId", x.say(a.ClientID))
		oauth.add("clientSecret", x.say(a.ClientSecret))
		oauth.add("authorizationUrl", x.say(a.AuthorizationEndpoint))
		oauth.add("tokenUrl", x.say(a.TokenEndpoint))
		oauth.add("scopes", x.sayAll(a.Scopes))
		oauth.add("redirectUri", x.say(a.RedirectURI))
		o.add("oauth", oauth)
	}
	return o
}

func writeOpencode(x *exporting, s config.Server) object {
	x.unsaid(s)
	var o object
	if s.URL == "" {
		o.set("type", "local")
		o.add("command", append([]string{x.say(s.Command)}, x.sayAll(s.Args)...))
		o.add("cwd", x.say(s.Cwd))
		o.add("environment", x.sayDict(s.Env))
	} else {
		o.set("type", "remote")
		o.add("url", x.say(s.URL))
		o.add("headers", x.sayDict(s.Headers))
		switch a := s.OAuth; {
		case a != nil && a.Discovery.Mode == "off" && a.ClientID == "":
			o.set("oauth", false)
		case a != nil:
			var oauth object
			oauth.add("clientId", x.say(a.ClientID))
			oauth.add("clientSecret", x.say(a.ClientSecret))
			oauth.add("scope", strings.Join(x.sayAll(a.Scopes), " "))
			oauth.add("redirectUri", x.say(a.RedirectURI))
			o.add("oauth", oauth)
		}
	}
	o.set("enabled", !s.Disabled)
	return o
}

func wrapOpencode(_ *exporting, root object) object {
	return append(object{{"$schema", "https://opencode.ai/config.json"}}, root...)
}

func writeZed(x *exporting, s config.Server) object {
	x.unsaid(s)
	o := x.base(s, "url")
	if s.Disabled {
		o.set("enabled", false)
	}
	if a := s.OAuth; a != nil && a.ClientID != "" {
		oauth := object{{"client_id", x.say(a.ClientID)}}
		oauth.add("client_secret", x.say(a.ClientSecret))
		o.add("oauth", oauth)
	}
	return o
}
