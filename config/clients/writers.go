package clients

import (
	"strings"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
	"github.com/usher-mcp/usher/config/template"
)

// base writes what most shapes share: the command with its parts, or the
// address under urlKey.
func (x *exporting) base(s config.Server, urlKey string) syntax.Object {
	var o syntax.Object
	if s.URL == "" {
		o.Add("command", x.say(s.Command))
		o.Add("args", x.sayAll(s.Args))
		o.Add("env", x.sayDict(s.Env))
		o.Add("cwd", x.say(s.Cwd))
		return o
	}
	o.Add(urlKey, x.say(s.URL))
	o.Add("headers", x.sayDict(s.Headers))
	return o
}

// typed puts the transport in front.
func typed(s config.Server, stdio string, o syntax.Object) syntax.Object {
	kind := string(s.Transport)
	if s.URL == "" {
		kind = stdio
	}
	return append(syntax.NewObject("type", kind), o...)
}

// writeStandard writes the usual shape.
func writeStandard(x *exporting, s config.Server) syntax.Object {
	return writeAs("type", "http", "url")(x, s)
}

// writeAs writes the usual shape with the client's own words: the key of the
// transport, the transport of today over HTTP, and the key of the address. No
// key of the transport means that it follows from the others.
func writeAs(tag, streamable, urlKey string) func(*exporting, config.Server) syntax.Object {
	return func(x *exporting, s config.Server) syntax.Object {
		x.unsaid(s)
		o := x.base(s, urlKey)
		if tag != "" {
			kind := string(s.Transport)
			if s.URL == "" {
				kind = "stdio"
			} else if s.Transport == config.TransportHTTP {
				kind = streamable
			}
			o = append(syntax.NewObject(tag, kind), o...)
		}
		o.Add("disabled", s.Disabled)
		return o
	}
}

func writeClaude(x *exporting, s config.Server) syntax.Object {
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
	var o syntax.Object
	o.Add("command", "npx")
	o.Add("args", args)
	return o
}

func writeClaudeCode(x *exporting, s config.Server) syntax.Object {
	if s.Disabled {
		x.note("left out: Claude Code cannot disable a server")
		return nil
	}
	o := typed(s, "stdio", x.base(s, "url"))
	if p, err := template.Placeholders(s.HeadersFrom); err == nil && len(p) == 1 && p[0].Kind == template.Command {
		o.Add("headersHelper", p[0].Name)
		s.HeadersFrom = ""
	}
	x.unsaid(s)
	if a := s.OAuth; a != nil {
		var oauth syntax.Object
		oauth.Add("clientId", x.say(a.ClientID))
		if n := port(a.RedirectURI); n > 0 {
			oauth.Add("callbackPort", n)
		}
		oauth.Add("authServerMetadataUrl", x.say(a.MetadataURL))
		oauth.Add("scopes", strings.Join(x.sayAll(a.Scopes), " "))
		o.Add("oauth", oauth)
	}
	return o
}

func writeCursor(x *exporting, s config.Server) syntax.Object {
	if s.Disabled {
		x.note("left out: Cursor disables servers in its settings, not in the file")
		return nil
	}
	x.unsaid(s)
	o := x.base(s, "url")
	if a := s.OAuth; a != nil {
		var auth syntax.Object
		auth.Add("CLIENT_ID", x.say(a.ClientID))
		auth.Add("CLIENT_SECRET", x.say(a.ClientSecret))
		auth.Add("scopes", x.sayAll(a.Scopes))
		o.Add("auth", auth)
	}
	return o
}

func writeVSCode(x *exporting, s config.Server) syntax.Object {
	if s.Disabled {
		x.note("left out: VS Code disables servers in its settings, not in the file")
		return nil
	}
	x.unsaid(s)
	o := typed(s, "stdio", x.base(s, "url"))
	if a := s.OAuth; a != nil && a.ClientID != "" {
		var oauth syntax.Object
		oauth.Add("clientId", x.say(a.ClientID))
		o.Add("oauth", oauth)
	}
	return o
}

// wrapVSCode puts the questions in front of the servers.
func wrapVSCode(x *exporting, root syntax.Object) syntax.Object {
	var inputs []syntax.Object
	for _, in := range x.inputs {
		inputs = append(inputs, syntax.NewObject("type", "promptString").With("id", in.ID).With("description", in.Description).With("password", true))
	}
	if len(inputs) == 0 {
		return root
	}
	return append(syntax.NewObject("inputs", inputs), root...)
}

func writeWindsurf(x *exporting, s config.Server) syntax.Object {
	x.unsaid(s)
	o := x.base(s, "serverUrl")
	o.Add("disabled", s.Disabled)
	o.Add("disabledTools", s.Tools.Deny)
	return o
}

func writeCopilot(x *exporting, s config.Server) syntax.Object {
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
	o.Add("tools", tools)
	if a := s.OAuth; a != nil {
		o.Add("oauthClientId", x.say(a.ClientID))
		if n := port(a.RedirectURI); n > 0 {
			o.Add("auth", syntax.NewObject("redirectPort", n))
		}
	}
	return o
}

func writeGemini(x *exporting, s config.Server) syntax.Object {
	x.unsaid(s)
	if s.Disabled {
		x.note("add it to mcp.excluded, or Gemini will start it")
	}
	o := x.base(s, "url")
	if s.URL != "" {
		o.Add("type", string(s.Transport))
	}
	if s.Timeouts.Call != config.DefaultCallTimeout && s.Timeouts.Call > 0 {
		o.Add("timeout", s.Timeouts.Call.Milliseconds())
	}
	o.Add("includeTools", s.Tools.Allow)
	o.Add("excludeTools", s.Tools.Deny)
	if a := s.OAuth; a != nil {
		oauth := syntax.NewObject("enabled", true)
		oauth.Add("clientId", x.say(a.ClientID))
		oauth.Add("clientSecret", x.say(a.ClientSecret))
		oauth.Add("authorizationUrl", x.say(a.AuthorizationEndpoint))
		oauth.Add("tokenUrl", x.say(a.TokenEndpoint))
		oauth.Add("scopes", x.sayAll(a.Scopes))
		oauth.Add("redirectUri", x.say(a.RedirectURI))
		o.Add("oauth", oauth)
	}
	return o
}

func writeOpencode(x *exporting, s config.Server) syntax.Object {
	x.unsaid(s)
	var o syntax.Object
	if s.URL == "" {
		o.Set("type", "local")
		o.Add("command", append([]string{x.say(s.Command)}, x.sayAll(s.Args)...))
		o.Add("cwd", x.say(s.Cwd))
		o.Add("environment", x.sayDict(s.Env))
	} else {
		o.Set("type", "remote")
		o.Add("url", x.say(s.URL))
		o.Add("headers", x.sayDict(s.Headers))
		switch a := s.OAuth; {
		case a != nil && a.Discovery.Mode == "off" && a.ClientID == "":
			o.Set("oauth", false)
		case a != nil:
			var oauth syntax.Object
			oauth.Add("clientId", x.say(a.ClientID))
			oauth.Add("clientSecret", x.say(a.ClientSecret))
			oauth.Add("scope", strings.Join(x.sayAll(a.Scopes), " "))
			oauth.Add("redirectUri", x.say(a.RedirectURI))
			o.Add("oauth", oauth)
		}
	}
	o.Set("enabled", !s.Disabled)
	return o
}

func wrapOpencode(_ *exporting, root syntax.Object) syntax.Object {
	return append(syntax.NewObject("$schema", "https://opencode.ai/config.json"), root...)
}

func writeZed(x *exporting, s config.Server) syntax.Object {
	x.unsaid(s)
	o := x.base(s, "url")
	if s.Disabled {
		o.Set("enabled", false)
	}
	if a := s.OAuth; a != nil && a.ClientID != "" {
		oauth := syntax.NewObject("client_id", x.say(a.ClientID))
		oauth.Add("client_secret", x.say(a.ClientSecret))
		o.Add("oauth", oauth)
	}
	return o
}
