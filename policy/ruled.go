package policy

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// ruled is what one set of rules says about an account. It does not keep that set, which
// may be old.
type ruled struct {
	in    uint64  // number of the rules
	pins  string  // what to do about changed tools
	whole verdict // on the server as a whole
	tools atomic.Pointer[map[string]verdict]
	mu    sync.Mutex // guards replacing tools
}

// maxVerdicts bounds what is remembered per account: callers may ask for names that no
// server has.
const maxVerdicts = 1024

// ruledBy asks a set of rules about the account, once.
func (sc *accountState) ruledBy(r *rules) *ruled {
	found := sc.ruled.Load()
	if found == nil || found.in != r.number {
		found = &ruled{in: r.number, pins: r.servers[sc.id.server].pinMode(), whole: r.decide(sc.id.server, sc.id.account, "")}
		found.tools.Store(&map[string]verdict{})
		sc.ruled.Store(found)
	}
	return found
}

// decide is [rules.decide] for the account, from memory where it was asked before.
func (sc *accountState) decide(r *rules, tool string) verdict {
	found := sc.ruledBy(r)
	if tool == "" {
		return found.whole
	}
	if v, ok := (*found.tools.Load())[tool]; ok {
		return v
	}
	v := r.decide(sc.id.server, sc.id.account, tool)
	found.remember(tool, v)
	return v
}

// remember copies the map, so that readers need no lock. Each name is added once.
func (f *ruled) remember(tool string, v verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := *f.tools.Load()
	if len(old) >= maxVerdicts {
		return
	}
	tool = strings.Clone(tool) // it is part of a request
	if v.tool == tool {
		v.tool = tool
	}
	next := maps.Clone(old)
	next[tool] = v
	f.tools.Store(&next)
}
