package surface

import (
	"context"
	"fmt"

	"github.com/usher-mcp/usher/surface/search"
)

// The two answers of Auto.
const (
	ModeMeta   = "meta"
	ModeDirect = "direct"
)

// assumed is what a server that was never seen is taken to cost, in tokens.
const assumed = 1500

// decide chooses between meta and direct.
func (s *Surface) decide() (string, Explanation) {
	e := s.costs(s.life)
	unseen := 0
	for _, r := range e.Rows {
		if !r.Known {
			unseen++
		}
	}
	expected := e.Tokens + unseen*assumed
	switch {
	case s.opt.Mode == ModeMeta || s.opt.Mode == ModeDirect:
		e.Mode, e.Why = s.opt.Mode, "the configuration says so"
	case expected <= e.Budget:
		e.Mode = ModeDirect
		e.Why = fmt.Sprintf("the tools of all servers fit the budget: about %d of %d tokens", expected, e.Budget)
	default:
		e.Mode = ModeMeta
		e.Why = fmt.Sprintf("the tools of all servers would cost about %d tokens and the budget is %d; the one tool costs %d", expected, e.Budget, e.Meta)
	}
	if unseen > 0 {
		e.Why += fmt.Sprintf(" (%d servers were never seen; %d tokens are assumed for each)", unseen, assumed)
	}
	return e.Mode, e
}

// costs counts what the direct view costs, per server.
func (s *Surface) costs(ctx context.Context) Explanation {
	snap := s.snapshot(ctx, (&endpoint{s: s}).agent(Agent{}))
	e := Explanation{Budget: s.opt.TokenBudget, Meta: search.Tokens([]byte(metaTool)), Rows: []ServerCosts{}}
	rows := map[*source]*ServerCosts{}
	for i := range snap.sources {
		src := &snap.sources[i]
		if src.Off {
			continue
		}
		e.Rows = append(e.Rows, ServerCosts{Server: src.label, Known: src.known})
	}
	at := 0
	for i := range snap.sources {
		if src := &snap.sources[i]; !src.Off {
			rows[src] = &e.Rows[at]
			at++
		}
	}
	for shown, t := range snap.tools.items {
		cost := search.Tokens(t.def) + search.Tokens([]byte(shown)) - search.Tokens([]byte(t.name))
		rows[t.src].Tools++
		rows[t.src].Tokens += cost
		e.Tokens += cost
	}
	return e
}
