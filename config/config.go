package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/usher-mcp/usher/internal/suggest"
)

// Server returns the server of that exact name.
func (c *Config) Server(name string) (Server, bool) {
	i := slices.IndexFunc(c.Servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return c.Servers[i].clone(), true
}

// CheckUsable returns an error if a configured server cannot be used at all.
func (c *Config) CheckUsable(name string) error {
	if srv, ok := c.Server(name); ok && srv.Problem != nil {
		return fmt.Errorf("%s cannot be used: %w", name, srv.Problem)
	}
	return nil
}

// Nearest returns up to three names that name may have been meant as, the
// closest first.
func (c *Config) Nearest(name string) []string {
	names := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		names[i] = s.Name
	}
	return suggest.Nearest(name, names)
}

// Input returns the question with that id.
func (c *Config) Input(id string) (Input, bool) {
	i := slices.IndexFunc(c.Inputs, func(in Input) bool { return in.ID == id })
	if i < 0 {
		return Input{}, false
	}
	return c.Inputs[i], true
}

// Change tells what a reload has to do; each list is sorted.
type Change struct {
	Added, Removed, Changed []string
	Settings                bool // something under "usher" differs
}

// Diff compares c with an older configuration. A server that only moved in
// its file has not changed.
func (c *Config) Diff(old *Config) Change {
	var out Change
	before := map[string]Server{}
	for _, s := range old.Servers {
		before[s.Name] = s
	}
	for _, s := range c.Servers {
		o, ok := before[s.Name]
		delete(before, s.Name)
		switch {
		case !ok:
			out.Added = append(out.Added, s.Name)
		case !s.Same(o):
			out.Changed = append(out.Changed, s.Name)
		}
	}
	out.Removed = slices.Sorted(maps.Keys(before))
	out.Settings = (c.Usher.Problem == nil) != (old.Usher.Problem == nil) ||
		!reflect.DeepEqual(withoutPlaces(c.Usher), withoutPlaces(old.Usher))
	return out
}

// Same reports whether two definitions mean the same, wherever they stand.
func (s Server) Same(o Server) bool {
	if (s.Problem == nil) != (o.Problem == nil) || s.Origin.Layer != o.Origin.Layer || s.Origin.File != o.Origin.File {
		return false
	}
	s, o = s.clone(), o.clone()
	s.Origin, o.Origin = Origin{}, Origin{}
	s.Problem, o.Problem = nil, nil
	return reflect.DeepEqual(s, o)
}

func withoutPlaces(s Settings) Settings {
	strip := func(rules []Rule) []Rule {
		out := make([]Rule, len(rules))
		for i, r := range rules {
			out[i] = Rule{Pattern: r.Pattern}
		}
		return out
	}
	s.Policy = Policy{Allow: strip(s.Policy.Allow), Deny: strip(s.Policy.Deny)}
	s.Problem, s.Mistakes, s.unread = nil, nil, nil // errors carry places; Problem is compared by the caller
	return s
}
