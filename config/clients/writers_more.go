package clients

import (
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
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
func writeCodex(x *exporting, s config.Server) object {
	var o object
	if s.URL == "" {
		o = x.codexCommand(s)
	} else {
		o = x.codexAddress(s)
	}
	if s.Disabled {
		o.set("enabled", false)
	}
	if d := s.Timeouts.Connect; d != config.DefaultConnectTimeout && d > 0 {
		o.add("startup_timeout_sec", d.Seconds())
	}
	if d := s.Timeouts.Call; d != config.DefaultCallTimeout && d > 0 {
		o.add("tool_timeout_sec", d.Seconds())
	}
	o.add("enabled_tools", s.Tools.Allow)
	o.add("disabled_tools", s.Tools.Deny)
	return o
}

func (x *exporting) codexCommand(s config.Server) object {
	x.unsaid(s)
	var o object
	o.add("command", x.say(s.Command))
	o.add("args", x.sayAll(s.Args))
	env, pass := map[string]string{}, []string(nil)
	for _, k := range sortedKeys(s.Env) {
		if onlyVariable(s.Env[k], "") == k {
			pass = append(pass, k)
		} else {
			env[k] = x.say(s.Env[k])
		}
	}
	o.add("env", env)
	o.add("env_vars", pass)
	o.add("cwd", x.say(s.Cwd))
	return o
}

func (x *exporting) codexAddress(s config.Server) object {
	var o object
	o.add("url", x.say(s.URL))
	headers, fromEnv := map[string]string{}, map[string]string{}
	for _, k := range sortedKeys(s.Headers) {
		v := s.Headers[k]
		bearer, whole := onlyVariable(v, "Bearer "), onlyVariable(v, "")
		switch {
		case bearer != "" && strings.EqualFold(k, "Authorization"):
			o.add("bearer_token_env_var", bearer)
		case whole != "":
			fromEnv[k] = whole
		default:
			headers[k] = x.say(v)
		}
	}
	o.add("http_headers", headers)
	o.add("env_http_headers", fromEnv)
	if p, err := template.Placeholders(s.HeadersFrom); err == nil && len(p) == 1 && p[0].Kind == template.Command {
		o.add("http_headers_helper", p[0].Name)
		s.HeadersFrom = ""
	}
	x.unsaid(s)
	if a := s.OAuth; a != nil {
		o.add("scopes", x.sayAll(a.Scopes))
		if strings.Contains(a.Resource, "://") {
			o.add("oauth_resource", x.say(a.Resource))
		}
		var oauth object
		oauth.add("client_id", x.say(a.ClientID))
		if n := port(a.RedirectURI); n > 0 {
			oauth.add("callback_port", n)
		}
		o.add("oauth", oauth)
	}
	return o
}

// writeGoose names secrets by key; goose asks for them and keeps them in its
// keyring.
func writeGoose(x *exporting, s config.Server) object {
	x.unsaid(s)
	o := object{{"type", "stdio"}, {"name", s.Name}, {"description", s.Title}}
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
		o.add("cmd", x.say(s.Command))
		o.set("args", append([]string{}, x.sayAll(s.Args)...))
		for _, k := range sortedKeys(s.Env) {
			secret(k, s.Env[k])
		}
	} else {
		if s.Transport == config.TransportSSE {
			x.note("left out: goose no longer speaks SSE")
			return nil
		}
		o[0].value = "streamable_http"
		o.add("uri", x.say(s.URL))
		o.add("headers", x.gooseHeaders(s, &keys))
	}
	o.set("envs", dictObject(envs))
	o.set("env_keys", append([]string{}, keys...))
	timeout := s.Timeouts.Call
	if timeout <= 0 {
		timeout = config.DefaultCallTimeout
	}
	o.set("timeout", int(timeout/time.Second))
	o.set("enabled", !s.Disabled)
	o.add("available_tools", s.Tools.Allow)
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
