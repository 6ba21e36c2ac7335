package gate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// This file is the model: who may see what, written from docs/ and ARCHITECTURE.md.
// It calls nothing of the product.

// verdict is what the model says about one use of one thing.
type verdict int

const (
	fine        verdict = iota
	unknown             // the server or account does not exist for the caller
	noTool              // the server exists for the caller, the tool does not
	unsupported         // the caller has single tools of the server, and asked for more
	denied              // a rule forbids it
	blocked             // the tool is not what was pinned
)

func (v verdict) String() string {
	return [...]string{"fine", "unknown", "no tool", "unsupported", "denied", "blocked"}[v]
}

// demand is how much of a server an operation uses.
type demand int

const (
	aServer demand = iota
	aTool
	theWhole
)

// client is a token and what it covers.
type client struct {
	name, principal string
	servers, tools  []string
}

// selection is a profile.
type selection struct {
	Servers []string `json:"servers,omitempty"`
	Tools   []string `json:"tools,omitempty"`
}

// place is an endpoint: /mcp and the like, one server, or a profile.
type place struct {
	path, kind      string // kind is joined, meta or single
	server, account string // of a single one
	profile         string
}

// account is an account of a principal; without a label it is the default one.
type account struct{ principal, server, label string }

// state is all that decides who sees what.
type state struct {
	servers  map[string]bool
	deny     []string
	profiles map[string]selection
	logins   map[account]bool
	version  map[string]int  // of the tool that changes, by server
	pins     map[account]int // the version that was approved
}

var (
	modelServers = []string{"crm", "docs", "hr"}
	modelTools   = []string{"flip", "read", "write"}
)

func matches(patterns []string, names ...string) bool {
	for _, p := range patterns {
		for _, n := range names {
			if ok, err := path.Match(p, n); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// patternsFor are the patterns that a list of "server/tool" has for an account.
func patternsFor(list []string, server, account string) (out []string) {
	for _, p := range list {
		of, tool, ok := strings.Cut(p, "/")
		if !ok {
			of, tool = "*", p
		}
		if matches([]string{of}, server, label(server, account)) {
			out = append(out, tool)
		}
	}
	return out
}

func (st *state) exists(principal, server, label string) bool {
	return st.servers[server] && (label == "" || st.logins[account{principal, server, label}])
}

// covers says how much of an account is in the scope of a client at a place.
func (st *state) covers(c client, p place, server, label string, n demand, tool string) verdict {
	names := []string{server, server + "@" + label}
	if label == "" {
		names = names[:1]
	}
	byToken, byProfile := patternsFor(c.tools, server, label), []string(nil)
	whole, all := len(c.tools) == 0, true
	if len(c.servers) > 0 && !matches(c.servers, names...) || len(c.tools) > 0 && byToken == nil {
		return unknown
	}
	if p.profile != "" {
		sel := st.profiles[p.profile]
		byProfile, all = patternsFor(sel.Tools, server, label), matches(sel.Servers, names...)
		whole = whole && all
		if !all && byProfile == nil {
			return unknown
		}
	}
	switch {
	case n == theWhole && !whole:
		return unsupported
	case n == aTool && len(c.tools) > 0 && !matches(byToken, tool), n == aTool && byProfile != nil && !matches(byProfile, tool):
		return noTool
	}
	return fine
}

func (st *state) denies(server, label, tool string) bool {
	for _, rule := range st.deny {
		of, what, single := strings.Cut(rule, "/")
		name := server
		if strings.Contains(of, "@") {
			name = server + "@" + label
		}
		if matches([]string{of}, name) && (!single || tool != "" && matches([]string{what}, tool)) {
			return true
		}
	}
	return false
}

// may decides one operation; hidden says that a refusal has something behind it. At
// the place of a server that is denied as a whole nothing else is said.
func (st *state) may(c client, p place, n demand, server, label, tool string) (v verdict, hidden bool) {
	if !st.exists(c.principal, server, label) {
		return unknown, false
	}
	if p.kind == "single" && n != aServer {
		if v, hidden := st.may(c, p, aServer, server, label, ""); v != fine {
			return v, hidden
		}
	}
	if v := st.covers(c, p, server, label, n, tool); v != fine {
		return v, true
	}
	switch {
	case st.denies(server, label, tool):
		return denied, true
	case n == aTool && !slices.Contains(modelTools, tool):
		return noTool, false
	case n == aTool && tool == "flip" && st.version[server] != st.pins[account{c.principal, server, label}]:
		return blocked, true
	}
	return fine, false
}

// spot is a server, or an account at it.
type spot struct{ server, label string }

func (s spot) String() string { return label(s.server, s.label) }

// reach are the accounts that a client can see at a place at all.
func (st *state) reach(c client, p place) []spot {
	spots := []spot{}
	for _, s := range slices.Sorted(maps.Keys(st.servers)) {
		spots = append(spots, spot{s, ""})
	}
	for a := range st.logins {
		if a.principal == c.principal && st.logins[a] {
			spots = append(spots, spot{a.server, a.label})
		}
	}
	return slices.DeleteFunc(spots, func(s spot) bool {
		if p.kind == "single" && (s.server != p.server || s.label != p.account) {
			return true
		}
		v, _ := st.may(c, p, aServer, s.server, s.label, "")
		return v != fine
	})
}

// wholes are those of reach of which more than tools can be seen.
func (st *state) wholes(c client, p place) []spot {
	return slices.DeleteFunc(st.reach(c, p), func(s spot) bool {
		v, _ := st.may(c, p, theWhole, s.server, s.label, "")
		return v != fine
	})
}

// toolsAt are the tools of an account that a client sees at a place.
func (st *state) toolsAt(c client, p place, s spot) (out []string) {
	for _, tool := range modelTools {
		if v, _ := st.may(c, p, aTool, s.server, s.label, tool); v == fine {
			out = append(out, tool)
		}
	}
	return out
}

// shown is a name on the joined surface.
func (s spot) shown(name string) string {
	if s.label == "" {
		return s.server + "__" + name
	}
	return s.server + "--" + s.label + "__" + name
}

// full is the address of a resource that names its server.
func (s spot) full(uri string) string {
	return "usher://" + s.String() + "/" + uri
}

// urisOf are the resources of a server.
func urisOf(server string) []string { return []string{server + "://doc", "shared://doc"} }

const modelTemplate = "fake://item/{id}"

// list is one of the four lists of a place as a client must see it.
func (st *state) list(c client, p place, what string) (out []string) {
	if p.kind == "meta" {
		return []string{"mcp"}
	}
	if what == "tools" && p.kind == "joined" {
		out = append(out, "login", "status")
	}
	owners := map[string]int{}
	for _, s := range st.wholes(c, p) {
		for _, uri := range append(urisOf(s.server), modelTemplate) {
			owners[uri]++
		}
	}
	address := func(s spot, uri string) string {
		if p.kind == "joined" && owners[uri] > 1 {
			return s.full(uri)
		}
		return uri
	}
	name := func(s spot, own string) string {
		if p.kind == "joined" {
			return s.shown(own)
		}
		return own
	}
	for _, s := range st.reach(c, p) {
		for _, tool := range st.toolsAt(c, p, s) {
			if what == "tools" {
				out = append(out, name(s, tool))
			}
		}
	}
	for _, s := range st.wholes(c, p) {
		switch what {
		case "prompts":
			out = append(out, name(s, "greet"))
		case "resources":
			for _, uri := range urisOf(s.server) {
				out = append(out, address(s, uri))
			}
		case "resourceTemplates":
			out = append(out, address(s, modelTemplate))
		}
	}
	slices.Sort(out)
	return out
}

// route says which accounts an address on the joined surface may lead to: one, none,
// or several between which it does not choose; rest is the address there.
func (st *state) route(c client, p place, uri string) (to []spot, rest string) {
	wholes := st.wholes(c, p)
	var owners []spot
	for _, s := range wholes {
		if own, ok := strings.CutPrefix(strings.Replace(uri, "%40", "@", 1), s.full("")); ok {
			return []spot{s}, own
		}
		if slices.Contains(urisOf(s.server), uri) || strings.HasPrefix(uri, "fake://item/") {
			owners = append(owners, s)
		}
	}
	if len(owners) == 0 && len(wholes) == 1 { // the only one with resources at all
		owners = wholes
	}
	return owners, uri
}

// secrets are the canaries that must never reach a client at a place.
func (st *state) secrets(c client, p place) []string {
	seen := map[string]bool{}
	reach := st.reach(c, p)
	for _, s := range reach {
		tools := st.toolsAt(c, p, s)
		for _, tool := range tools {
			seen[describedAs(s.server, tool, st.version[s.server])] = true
			seen[canary(s.server, tool+"-result")] = true
		}
		if len(tools) > 0 && s.label != "" {
			seen[bearerOf(account{c.principal, s.server, s.label})] = true
		}
	}
	for _, s := range st.wholes(c, p) {
		for _, part := range wholeParts {
			seen[canary(s.server, part)] = true
		}
	}
	var out []string
	for _, text := range allSecrets {
		if !seen[text] {
			out = append(out, text)
		}
	}
	return out
}

// describedAs is the description of a tool; that of flip changes.
func describedAs(server, tool string, version int) string {
	if tool == "flip" {
		tool = fmt.Sprintf("flip-v%d", version)
	}
	return canary(server, tool+"-description")
}

func bearerOf(a account) string { return "CANARY-bearer-" + a.principal + "-" + a.label + "." }

var allSecrets = func() (out []string) {
	for _, server := range modelServers {
		for _, tool := range modelTools {
			out = append(out, canary(server, tool+"-result"))
			for v := range 3 {
				out = append(out, describedAs(server, tool, v))
			}
		}
		for _, part := range wholeParts {
			out = append(out, canary(server, part))
		}
	}
	for _, a := range modelLogins {
		out = append(out, bearerOf(a))
	}
	slices.Sort(out)
	return slices.Compact(out)
}()

// modelLogins are the logins that come and go.
var modelLogins = []account{{"local", "crm", "work"}, {"eve", "crm", "home"}, {"local", "docs", "work"}}

// What the sequence of a failed walk shows.
func (c client) GoString() string   { return c.name }
func (p place) GoString() string    { return p.path }
func (s spot) GoString() string     { return s.String() }
func (s *session) GoString() string { return s.client.name + " at " + s.at.path }
