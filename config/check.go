package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config/template"
	"github.com/usher-mcp/usher/internal/pattern"
	"github.com/usher-mcp/usher/internal/visible"
)

// ParseTransport maps every spelling seen in files to ours.
func ParseTransport(kind string) (Transport, bool) {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(kind)) {
	case "stdio", "local":
		return TransportStdio, true
	case "http", "streamablehttp", "remote":
		return TransportHTTP, true
	case "sse":
		return TransportSSE, true
	}
	return "", false
}

// Validate says what is wrong with a server made by a program, or returns nil.
func (s Server) Validate() error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	c := s.clone()
	err := c.walk(func(f field, v string) (string, error) {
		if _, err := template.Parse(v); err != nil {
			return v, fmt.Errorf("%s: %w", f.path, err)
		}
		return v, nil
	})
	if err != nil {
		return err
	}
	return c.check(string(s.Transport))
}

// check sets the transport and says what is wrong with the entry as a whole.
// kind is the transport as written, or empty. What hangs on the value of a
// placeholder is checked by Resolve.
func (s *Server) check(kind string) error {
	if err := s.chooseTransport(kind); err != nil {
		return err
	}
	if s.URL != "" {
		if err := checkURLTemplate(s.URL); err != nil {
			return fmt.Errorf("url %w", err)
		}
	}
	for name, value := range s.Headers {
		if strings.Contains(value, "${") {
			value = ""
		}
		if err := checkHeader(name, value); err != nil {
			return fmt.Errorf("headers: %w", err)
		}
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("env: %s cannot name a variable", visible.Quote(name))
		}
	}
	return nil
}

func (s *Server) chooseTransport(kind string) error {
	switch {
	case s.Command != "" && s.URL != "":
		return errors.New("has both command and url; keep the one that is meant")
	case s.Command == "" && s.URL == "" && s.Disabled: // only switches off a name
	case s.Command == "" && s.URL == "":
		return errors.New(`needs "command" (a program to start) or "url" (a server to connect to)`)
	}
	s.Transport = TransportStdio
	if s.URL != "" {
		s.Transport = TransportHTTP
	}
	if kind == "" {
		return nil
	}
	t, ok := ParseTransport(kind)
	switch {
	case !ok:
		return fmt.Errorf("type must be stdio, http or sse, not %s", visible.Quote(kind))
	case t == TransportStdio && s.URL != "":
		return errors.New(`type is stdio, but it has a url; write "type": "http" or a command`)
	case t != TransportStdio && s.Command != "":
		return fmt.Errorf(`type is %s, but it has a command; write "type": "stdio" or a url`, t)
	}
	s.Transport = t
	return nil
}

// unused names the keys that the transport has no use for.
func (s *Server) unused() []string {
	var out []string
	add := func(set bool, name string) {
		if set {
			out = append(out, name)
		}
	}
	if s.Transport == TransportStdio {
		add(len(s.Headers) > 0, "headers")
		add(s.HeadersFrom != "", "headersFrom")
		add(s.OAuth != nil, "oauth")
		return out
	}
	add(len(s.Args) > 0, "args")
	add(len(s.Env) > 0, "env")
	add(s.Cwd != "", "cwd")
	return out
}

// checkURLTemplate checks as much of an address as is written out.
func checkURLTemplate(raw string) error {
	parts, err := template.Parse(raw)
	if err != nil {
		return err
	}
	if len(parts) == 1 && parts[0].Placeholder == nil {
		return checkURL(parts[0].Text)
	}
	first := parts[0].Text
	if parts[0].Placeholder != nil || strings.HasPrefix(first, "http://") || strings.HasPrefix(first, "https://") {
		return nil
	}
	return errors.New("must start with http:// or https://")
}

// checkGlob checks the syntax of a pattern over names.
func checkGlob(text string) error {
	if err := pattern.Check(text); err != nil {
		return fmt.Errorf("%s is not a pattern: %w", visible.Quote(text), err)
	}
	return nil
}
