package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/cli/cmdutil"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/config/template"
)

// server makes a server out of the command line, or says which part of it makes
// no sense.
func (o *addOptions) server() (config.Server, error) {
	s := config.Server{Name: o.name, Tags: o.tags, Disabled: o.disabled, Tools: config.ToolRules{Allow: o.allow, Deny: o.deny}}
	if err := config.CheckName(o.name); err != nil {
		return s, cmdutil.Usagef("usher add NAME URL", "%v", err)
	}
	if o.timeout < 0 {
		return s, cmdutil.Usagef("usher add --help", "--timeout must not be negative")
	}
	for _, pattern := range slices.Concat(o.allow, o.deny) {
		if err := config.CheckRule("*/" + pattern); err != nil {
			return s, cmdutil.Usagef("a pattern is a tool's name with * for any characters", "%v", err)
		}
	}
	s.Timeouts.Call = o.timeout
	if o.command {
		return s, o.program(&s)
	}
	return s, o.address(&s)
}

func (o *addOptions) program(s *config.Server) error {
	if len(o.words) == 0 {
		return cmdutil.Usagef("usher add "+o.name+" -- COMMAND ARGS…", "no command given after --")
	}
	for flag, set := range map[string]bool{"header": len(o.headers) > 0, "client-id": o.clientID != "", "scope": len(o.scopes) > 0} {
		if set {
			return cmdutil.Usagef("use --env NAME=VALUE for a program", "--%s is for servers with an address", flag)
		}
	}
	if o.transport != "" && o.transport != string(config.TransportStdio) {
		return cmdutil.Usagef("leave out --transport", "a program is spoken to over stdio, not %s", config.Unquoted(o.transport))
	}
	s.Transport, s.Command, s.Args, s.Cwd = config.TransportStdio, o.words[0], o.words[1:], o.cwd
	for _, text := range o.env {
		name, value, given := strings.Cut(text, "=")
		if name == "" {
			return cmdutil.Usagef("write --env NAME=VALUE", "--env %s names no variable", config.Visible(shownPair(text, "=")))
		}
		if !given {
			value = "${env:" + name + "}"
		}
		if _, twice := s.Env[name]; twice {
			return cmdutil.Usagef("keep one of them", "--env %s is given twice", config.Unquoted(name))
		}
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		s.Env[name] = value
	}
	return nil
}

func (o *addOptions) address(s *config.Server) error {
	switch {
	case len(o.words) == 0:
		return cmdutil.Usagef("usher add "+config.Unquoted(o.name)+" URL\nusher add "+config.Unquoted(o.name)+" -- COMMAND ARGS…", "%s needs an address, or a command after --", config.Unquoted(o.name))
	case !strings.Contains(o.words[0], "://") && !strings.HasPrefix(o.words[0], "${"):
		return cmdutil.Usagef("usher add "+config.Unquoted(o.name)+" -- "+config.Unquoted(strings.Join(template.MaskArgs(o.words), " ")),
			"%s is not an address; a command goes after --", config.Visible(template.MaskArgs(o.words)[0]))
	case len(o.words) > 1:
		return cmdutil.Usagef("usher add "+config.Unquoted(o.name)+" URL", "one address is enough: %s is too much", config.Visible(template.MaskArgs(o.words)[1]))
	case len(o.env) > 0:
		return cmdutil.Usagef("use --header NAME:VALUE for an address", "--env is for programs")
	case o.cwd != "":
		return cmdutil.Usagef("leave it out", "--cwd is for programs")
	}
	s.Transport, s.URL = config.TransportHTTP, o.words[0]
	switch o.transport {
	case "", "http":
	case "sse":
		s.Transport = config.TransportSSE
	default:
		return cmdutil.Usagef("--transport http, or sse for an old server", "there is no transport %s", config.Visible(o.transport))
	}
	if o.clientID != "" || len(o.scopes) > 0 {
		s.OAuth = &config.OAuth{ClientID: o.clientID, Scopes: o.scopes}
	}
	return o.addHeaders(s)
}

func (o *addOptions) addHeaders(s *config.Server) error {
	seen := map[string]bool{}
	for _, text := range o.headers {
		name, value, found := strings.Cut(text, ":")
		name = strings.TrimSpace(name)
		if !found || name == "" {
			return cmdutil.Usagef("write --header 'NAME: VALUE'", "--header %s has no name", config.Visible(shownPair(text, ":")))
		}
		if seen[http.CanonicalHeaderKey(name)] {
			return cmdutil.Usagef("keep one of them", "--header %s is given twice", config.Unquoted(name))
		}
		seen[http.CanonicalHeaderKey(name)] = true
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[name] = strings.TrimSpace(value)
	}
	return nil
}

// shownPair is a name and value for an error message: the value may be a secret.
func shownPair(text, sep string) string {
	if name, _, found := strings.Cut(text, sep); found {
		return name + sep + "…"
	}
	return template.MaskArgs([]string{text})[0]
}
