package policy

import (
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/internal/lookalike"
)

// maxToolName bounds names, which go into headers, logs and memory. The
// specification asks for at most 128 characters.
const maxToolName = limit.NameSize

// notAllowed is the reason when there are allow rules and none matches.
const notAllowed = "no allow rule matches it"

// rules is one configuration's policy, compiled. It never changes; a new configuration
// makes a new one.
type rules struct {
	number      uint64 // differs from that of all others of a gate
	problem     error  // settings that could not be read: nothing is allowed
	allow, deny []rule
	servers     map[string]*serverRules
}

// rule is one entry of usher.policy.
type rule struct {
	text    string
	origin  config.Origin
	server  glob
	account bool // the pattern names server@account
	tool    glob
	whole   bool // concerns the server as a whole: no tool, or *
}

// serverRules are the tool rules of one server.
type serverRules struct {
	pins        string            // see config.Server, empty for the default
	allow, deny []rule            // only tool is set
	own         map[string]string // shown name → the server's own
	shown       map[string]string // the server's own → shown name
	clash       map[string]string // a name that a rename makes mean two tools → why
}

// verdict is what the rules say about a name; tool is the server's own name for
// what was asked.
type verdict struct {
	tool   string
	denied *DeniedError
}

func compileRules(settings config.Settings, servers []config.Server) *rules {
	r := &rules{problem: settings.Problem, servers: make(map[string]*serverRules, len(servers))}
	for _, entry := range settings.Policy.Allow {
		r.allow = append(r.allow, compileRule("allow ", entry))
	}
	for _, entry := range settings.Policy.Deny {
		r.deny = append(r.deny, compileRule("deny ", entry))
	}
	for _, s := range servers {
		r.servers[s.Name] = compileServer(s)
	}
	return r
}

// with returns the rules with one server added or replaced.
func (r *rules) with(s config.Server) *rules {
	next := &rules{problem: r.problem, allow: r.allow, deny: r.deny, servers: maps.Clone(r.servers)}
	next.servers[s.Name] = compileServer(s)
	return next
}

// without returns the rules without those of one server.
func (r *rules) without(server string) *rules {
	next := &rules{problem: r.problem, allow: r.allow, deny: r.deny, servers: maps.Clone(r.servers)}
	delete(next.servers, server)
	return next
}

func compileRule(verb string, entry config.Rule) rule {
	server, tool, both := strings.Cut(entry.Pattern, "/")
	r := rule{
		text: verb + entry.Pattern, origin: entry.Origin,
		server: compileGlob(server), account: strings.Contains(server, "@"),
		whole: !both,
	}
	if both {
		r.tool = compileGlob(tool)
		r.whole = r.tool.all()
	}
	return r
}

func compileServer(s config.Server) *serverRules {
	sr := &serverRules{pins: s.Pins}
	if len(s.Tools.Rename) > 0 {
		sr.own, sr.shown, sr.clash = map[string]string{}, map[string]string{}, map[string]string{}
	}
	tool := func(verb, pattern string) rule {
		g := compileGlob(pattern)
		return rule{text: fmt.Sprintf("%s %s/%s", verb, s.Name, pattern), origin: s.Origin, tool: g, whole: g.all()}
	}
	for _, p := range s.Tools.Allow {
		sr.allow = append(sr.allow, tool("allow", p))
	}
	for _, p := range s.Tools.Deny {
		sr.deny = append(sr.deny, tool("deny", p))
	}
	for own, shown := range s.Tools.Rename {
		if other, taken := sr.own[shown]; taken {
			sr.clash[shown] = fmt.Sprintf("tools.rename gives this name to two tools, %s and %s",
				config.Visible(min(own, other)), config.Visible(max(own, other)))
		}
		sr.own[shown], sr.shown[own] = own, shown
	}
	return sr
}

// decide says whether a tool may be used, and what the server calls it. An empty
// tool asks for the server as a whole: may it be started and listed.
func (r *rules) decide(server, account, tool string) verdict {
	return r.judge(r.servers[server], server, account, tool)
}

func (r *rules) judge(sr *serverRules, server, account, tool string) verdict {
	v := verdict{tool: tool}
	refuse := func(by *rule, reason string) verdict {
		v.denied = &DeniedError{Server: server, Account: account, Tool: tool, Reason: reason}
		if by != nil {
			v.denied.Rule, v.denied.Origin = by.text, by.origin
		}
		return v
	}
	if r.problem != nil {
		return refuse(nil, fmt.Sprintf("the settings that hold the rules cannot be read: %v", r.problem))
	}
	if bad := badNames(server, account, tool); bad != "" {
		return refuse(nil, bad)
	}
	names := []string{tool}
	if sr != nil && tool != "" {
		if why := sr.clash[tool]; why != "" {
			return refuse(nil, why)
		}
		v.tool, names = sr.names(tool)
	}
	if by := r.deniedBy(sr, server, account, names); by != nil {
		return refuse(by, "")
	}
	if !r.allowedBy(sr, server, account, v.tool) {
		return refuse(nil, notAllowed)
	}
	return v
}

// names returns the server's own name for a tool, and all names it goes by: none
// of them may be denied.
func (sr *serverRules) names(tool string) (own string, all []string) {
	own = tool
	if o, ok := sr.own[tool]; ok {
		own = o
	}
	all = []string{tool, own}
	if s, ok := sr.shown[own]; ok {
		all = append(all, s)
	}
	return own, all
}

func (r *rules) deniedBy(sr *serverRules, server, account string, names []string) *rule {
	full := scopeName(server, account)
	for _, name := range names {
		folded := fold(name)
		for i := range r.deny {
			d := &r.deny[i]
			of := server
			if d.account {
				of = full
			}
			if (d.whole || name != "" && d.tool.catches(name, folded)) && d.server.catches(of, fold(of)) {
				return d
			}
		}
		if sr == nil {
			continue
		}
		for i := range sr.deny {
			if d := &sr.deny[i]; d.whole || name != "" && d.tool.catches(name, folded) {
				return d
			}
		}
	}
	return nil
}

// allowedBy asks for the server's own name of a tool only: what it is shown as
// is no reason to allow it.
func (r *rules) allowedBy(sr *serverRules, server, account, tool string) bool {
	ok := len(r.allow) == 0
	for i := range r.allow {
		a := &r.allow[i]
		of := server
		if a.account {
			of = scopeName(server, account)
		}
		ok = ok || a.server.matches(of) && (a.whole || tool == "" || a.tool.matches(tool))
	}
	if !ok || sr == nil || tool == "" || len(sr.allow) == 0 {
		return ok
	}
	for i := range sr.allow {
		if sr.allow[i].tool.matches(tool) {
			return true
		}
	}
	return false
}

// badNames says why names cannot be compared: two readers would not agree on
// where they end or what they are.
func badNames(server, account, tool string) string {
	if err := config.CheckName(server); err != nil {
		return err.Error()
	}
	switch {
	case strings.ContainsFunc(account, func(r rune) bool { return r == '/' || r == ' ' || lookalike.Hidden(r) || r == utf8.RuneError }):
		return "the account's name holds a blank, a slash or an invisible character"
	case len(tool) > maxToolName:
		return fmt.Sprintf("the tool's name is longer than %d bytes", maxToolName)
	case !utf8.ValidString(tool):
		return "the tool's name is not valid text"
	case strings.ContainsFunc(tool, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xA0 || r == utf8.RuneError }):
		return "the tool's name holds a control character or an unreadable one"
	case strings.TrimSpace(tool) != tool:
		return "the tool's name begins or ends with a blank"
	}
	return ""
}

// pinMode is what to do about changed tools of a server; nil has no rules.
func (sr *serverRules) pinMode() string {
	if sr != nil && sr.pins != "" {
		return sr.pins
	}
	return config.PinsBlock
}

// shownName is the name under which a server's tool is listed.
func (r *rules) shownName(server, tool string) string {
	if sr := r.servers[server]; sr != nil {
		if s, ok := sr.shown[tool]; ok {
			return s
		}
	}
	return tool
}
