package config

import (
	"slices"
	"strings"
)

// Tagged reports whether the server has one of the tags.
func (s Server) Tagged(tags ...string) bool {
	return slices.ContainsFunc(s.Tags, func(t string) bool { return slices.Contains(tags, t) })
}

// Tagged returns the names of the servers that have one of the tags, sorted.
func (c *Config) Tagged(tags ...string) []string {
	var out []string
	for _, s := range c.Servers {
		if s.Tagged(tags...) {
			out = append(out, s.Name)
		}
	}
	return out
}

// Tags returns every tag that a server has, sorted.
func (c *Config) Tags() []string {
	var out []string
	for _, s := range c.Servers {
		out = append(out, s.Tags...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Profile returns what a profile selects: its own globs, and the names of the servers
// with one of its tags. The tags of project files do not count, since their authors
// would choose what a profile lets a client use; nor do names that would be globs.
func (c *Config) Profile(p Profile) Profile {
	if len(p.Tags) == 0 {
		return p
	}
	p.Servers = slices.Clone(p.Servers)
	for _, s := range c.Servers {
		if s.Origin.Layer != LayerProject && !strings.ContainsAny(s.Name, `*?[\`) && s.Tagged(p.Tags...) {
			p.Servers = append(p.Servers, s.Name)
		}
	}
	return p
}
