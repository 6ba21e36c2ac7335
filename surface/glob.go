package surface

import (
	"slices"
	"strings"
)

// globMatch reports whether text fits a pattern in which * stands for any number of
// characters and ? for one byte.
func globMatch(pattern, text string) bool {
	star, back := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, back = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			back++
			p, t = star+1, back
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// selection is what a profile or the scope of an agent lets be seen.
type selection struct {
	profile        *Profile // nil: everything
	servers, tools []string // the agent's scope
}

func (s selection) empty() bool { return s.profile == nil && !s.scoped() }

// scoped: what is seen depends on who asks.
func (s selection) scoped() bool { return len(s.servers) > 0 || len(s.tools) > 0 }

// server reports whether anything of a server may be seen.
func (s selection) server(name, account string) bool {
	if len(s.servers) > 0 && !anyGlob(s.servers, name, label(name, account)) {
		return false
	}
	if s.profile == nil {
		return true
	}
	return s.whole(name, account) || len(s.named(name, account)) > 0
}

// whole: the profile names the server as such.
func (s selection) whole(name, account string) bool {
	return anyGlob(s.profile.Servers, name, label(name, account))
}

// named are the patterns of tools that the profile has for a server.
func (s selection) named(name, account string) []string {
	var out []string
	for _, p := range s.profile.Tools {
		server, tool, ok := strings.Cut(p, "/")
		if ok && anyGlob([]string{server}, name, label(name, account)) {
			out = append(out, tool)
		}
	}
	return out
}

// tool reports whether a tool of a server that may be seen may be seen; tool is the
// server's own name for it.
func (s selection) tool(name, account, tool string) bool {
	if len(s.tools) > 0 && !slices.ContainsFunc(s.tools, func(p string) bool { return scopeMatch(p, name, account, tool) }) {
		return false
	}
	if s.profile == nil {
		return true
	}
	if patterns := s.named(name, account); len(patterns) > 0 {
		return anyGlob(patterns, tool)
	}
	return s.whole(name, account)
}

func scopeMatch(pattern, name, account, tool string) bool {
	server, t, both := strings.Cut(pattern, "/")
	if !both {
		return globMatch(pattern, tool)
	}
	return anyGlob([]string{server}, name, label(name, account)) && globMatch(t, tool)
}

// others reports whether prompts and resources of a server may be seen: a scope or
// profile that names single tools means those and nothing else.
func (s selection) others(name, account string) bool {
	return len(s.tools) == 0 && (s.profile == nil || s.whole(name, account))
}

func anyGlob(patterns []string, texts ...string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return slices.ContainsFunc(texts, func(t string) bool { return globMatch(p, t) })
	})
}
