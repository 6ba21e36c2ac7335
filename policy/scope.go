package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/internal/pattern"
)

// Profile is a named selection: all of Servers, except that where Tools names tools
// of a server ("server/tool") only those are selected. Both are globs.
type Profile struct{ Servers, Tools []string }

// Scope is what exists for a caller: the intersection of a token's scope and a
// profile. It never changes. A nil *Scope is everything.
type Scope struct {
	servers, tools []string // globs of the token
	profile        *Profile
	key            string
}

// NewScope returns the scope of a token. servers are globs over "server" and
// "server@account"; tools are globs over "server/tool" or, without a slash, over the
// name of a tool of any server. Tools are compared under the server's own names. An
// empty list does not narrow anything; with both empty the scope is nil.
func NewScope(servers, tools []string) *Scope {
	if len(servers) == 0 && len(tools) == 0 {
		return nil
	}
	return &Scope{servers: servers, tools: tools, key: fmt.Sprintf("%q %q", servers, tools)}
}

// Within returns the part of the scope that a profile selects.
func (s *Scope) Within(name string, p Profile) *Scope {
	out := &Scope{profile: &p}
	if s != nil {
		out.servers, out.tools = s.servers, s.tools
	}
	out.key = fmt.Sprintf("%q %q %q %q %q", name, p.Servers, p.Tools, out.servers, out.tools)
	return out
}

// Key identifies the scope among all others; empty for a nil scope.
func (s *Scope) Key() string {
	if s == nil {
		return ""
	}
	return s.key
}

// Narrow reports whether the scope comes from a token, so that what a caller sees
// must not be shown to others.
func (s *Scope) Narrow() bool { return s != nil && (len(s.servers) > 0 || len(s.tools) > 0) }

// server reports whether anything of an account at a server exists for the caller.
func (s *Scope) server(name, account string) bool {
	if s == nil {
		return true
	}
	if len(s.servers) > 0 && !pattern.Any(s.servers, name, scopeName(name, account)) {
		return false
	}
	if len(s.tools) > 0 && !slices.ContainsFunc(s.tools, func(p string) bool { return mayName(p, name, account) }) {
		return false
	}
	return s.profile == nil || s.selects(name, account) || len(s.selected(name, account)) > 0
}

// mayName reports whether a tool pattern can match a tool of the server at all.
func mayName(rule, name, account string) bool {
	server, _, both := strings.Cut(rule, "/")
	return !both || pattern.Any([]string{server}, name, scopeName(name, account))
}

// selects reports whether the profile names the server as a whole.
func (s *Scope) selects(name, account string) bool {
	return pattern.Any(s.profile.Servers, name, scopeName(name, account))
}

// selected are the patterns of tools that the profile has for a server.
func (s *Scope) selected(name, account string) []string {
	var out []string
	for _, p := range s.profile.Tools {
		server, tool, ok := strings.Cut(p, "/")
		if ok && pattern.Any([]string{server}, name, scopeName(name, account)) {
			out = append(out, tool)
		}
	}
	return out
}

// tool reports whether a tool exists for the caller; tool is the server's own name.
func (s *Scope) tool(name, account, tool string) bool {
	if s == nil {
		return true
	}
	if len(s.tools) > 0 && !slices.ContainsFunc(s.tools, func(p string) bool { return scopeMatch(p, name, account, tool) }) {
		return false
	}
	if s.profile == nil {
		return true
	}
	if patterns := s.selected(name, account); len(patterns) > 0 {
		return pattern.Any(patterns, tool)
	}
	return s.selects(name, account)
}

func scopeMatch(rule, name, account, tool string) bool {
	server, t, both := strings.Cut(rule, "/")
	if !both {
		return pattern.Match(rule, tool)
	}
	return pattern.Any([]string{server}, name, scopeName(name, account)) && pattern.Match(t, tool)
}

// Whole reports whether more of a server exists for the caller than tools: a scope
// that names tools, and a profile that names tools but not the server, includes
// those tools and nothing else, so no prompts, resources, log messages or logins.
func (s *Scope) Whole(name, account string) bool {
	if s == nil {
		return true
	}
	if len(s.tools) > 0 {
		return false
	}
	return s.profile == nil || s.selects(name, account)
}
