package clients

import (
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/clients/syntax"
	"github.com/usher-mcp/usher/config/template"
)

// onlyVariable returns the variable that a template consists of, but for a
// prefix, or "".
func onlyVariable(value, prefix string) string {
	rest, ok := strings.CutPrefix(value, prefix)
	parts, err := template.Parse(rest)
	if !ok || err != nil || len(parts) != 1 || parts[0].Placeholder == nil {
		return ""
	}
	p := parts[0].Placeholder
	if p.Kind != template.Env || p.HasDefault {
		return ""
	}
	return p.Name
}

// writeCodex names what comes from the environment in keys of its own, since
// Codex expands nothing.
func writeCodex(x *exporting, s config.Server) syntax.Object {
	var o syntax.Object
	if s.URL == "" {
		o = x.codexCommand(s)
	} else {
		o = x.codexAddress(s)
	}
	if s.Disabled {
		o.Set("enabled", false)
	}
	if d := s.Timeouts.Connect; d != config.DefaultConnectTimeout && d > 0 {
		o.Add("startup_timeout_sec", d.Seconds())
	}
	if d := s.Timeouts.Call; d != config.DefaultCallTimeout && d > 0 {
		o.Add("tool_timeout_sec", d.Seconds())
	}
	o.Add("enabled_tools", s.Tools.Allow)
	o.Add("disabled_tools", s.Tools.Deny)
	return o
}

func (x *exporting) codexCommand(s config.Server) syntax.Object {
	x.unsaid(s)
	var o syntax.Object
	o.Add("command", x.say(s.Command))
	o.Add("args", x.sayAll(s.Args))
	env, pass := map[string]string{}, []string(nil)
	for _, k := range sortedKeys(s.Env) {
		if onlyVariable(s.Env[k], "") == k {
			pass = append(pass, k)
		} else {
			env[k] = x.say(s.Env[k])
		}
	}
	o.Add("env", env)
	o.Add("env_vars", pass)
	o.Add("cwd", x.say(s.Cwd))
	return o
}

func (x *exporting) codexAddress(s config.Server) syntax.Object {
	var o syntax.Object
	o.Add("url", x.say(s.URL))
	headers, fromEnv := map[string]string{}, map[string]string{}
	for _, k := range sortedKeys(s.Headers) {
		v := s.Headers[k]
		bearer, whole := onlyVariable(v, "Bearer "), onlyVariable(v, "")
		switch {
		case bearer != "" && strings.EqualFold(k, "Authorization"):
			o.Add("bearer_token_env_var", bearer)
		case whole != "":
			fromEnv[k] = whole
		default:
			headers[k] = x.say(v)
		}
	}
	o.Add("http_headers", headers)
	o.Add("env_http_headers", fromEnv)
	if p, err := template.Placeholders(s.HeadersFrom); err == nil && len(p) == 1 && p[0].Kind == template.Command {
		o.Add("http_headers_helper", p[0].Name)
		s.HeadersFrom = ""
	}
	x.unsaid(s)
	if a := s.OAuth; a != nil {
		o.Add("scopes", x.sayAll(a.Scopes))
		if strings.Contains(a.Resource, "://") {
			o.Add("oauth_resource", x.say(a.Resource))
		}
		var oauth syntax.Object
		oauth.Add("client_id", x.say(a.ClientID))
		if n := port(a.RedirectURI); n > 0 {
			oauth.Add("callback_port", n)
		}
		o.Add("oauth", oauth)
	}
	return o
}

// writeGoose names secrets by key; goose asks for them and keeps them in its
// keyring.
func writeGoose(x *exporting, s config.Server) syntax.Object {
	x.unsaid(s)
	o := syntax.NewObject("type", "stdio").With("name", s.Name).With("description", s.Title)
	envs, keys := map[string]string{}, []string(nil)
	secret := func(name, value string) {
		p, err := template.Placeholders(value)
		if err == nil && len(p) == 1 && p[0].Raw == value && p[0].Kind != template.File && p[0].Kind != template.Command {
			keys = append(keys, name)
			return
		}
		envs[name] = x.say(value)
	}
	if s.URL == "" {
		o.Add("cmd", x.say(s.Command))
		o.Set("args", append([]string{}, x.sayAll(s.Args)...))
		for _, k := range sortedKeys(s.Env) {
			secret(k, s.Env[k])
		}
	} else {
		if s.Transport == config.TransportSSE {
			x.note("left out: goose no longer speaks SSE")
			return nil
		}
		o[0].Value = "streamable_http"
		o.Add("uri", x.say(s.URL))
		o.Add("headers", x.gooseHeaders(s, &keys))
	}
	o.Set("envs", syntax.DictObject(envs))
	o.Set("env_keys", append([]string{}, keys...))
	timeout := s.Timeouts.Call
	if timeout <= 0 {
		timeout = config.DefaultCallTimeout
	}
	o.Set("timeout", int(timeout/time.Second))
	o.Set("enabled", !s.Disabled)
	o.Add("available_tools", s.Tools.Allow)
	return o
}

// gooseHeaders writes variables as ${VAR} and lists them as keys.
func (x *exporting) gooseHeaders(s config.Server, keys *[]string) map[string]string {
	out := map[string]string{}
	for _, k := range sortedKeys(s.Headers) {
		parts, err := template.Parse(s.Headers[k])
		if err != nil {
			continue
		}
		var b strings.Builder
		for _, p := range parts {
			switch {
			case p.Placeholder == nil:
				b.WriteString(p.Text)
			case p.Placeholder.Kind == template.File || p.Placeholder.Kind == template.Command:
				b.WriteString(x.placeholder(*p.Placeholder))
			default:
				name := variableName(p.Placeholder.Name)
				*keys = append(*keys, name)
				b.WriteString("${" + name + "}")
			}
		}
		out[k] = b.String()
	}
	return out
}
