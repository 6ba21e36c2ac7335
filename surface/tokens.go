package surface

import (
	"context"
	"fmt"
)

// The two answers of Auto.
const (
	ModeMeta   = "meta"
	ModeDirect = "direct"
)

// assumed is what a server that was never seen is taken to cost, in tokens.
const assumed = 1500

// Tokens estimates how many tokens a model reads for a text, without the vocabulary
// of any model: a word costs one token for every six letters begun, a number one
// for every three digits, a run of punctuation one for every two characters; single
// spaces belong to the word behind them. Characters beyond ASCII cost one each. On
// the definitions of real tools it is within a tenth or so of what common
// vocabularies give; it errs upwards.
func Tokens(text []byte) int {
	n := 0
	for i := 0; i < len(text); {
		class := tokenClass(text[i])
		j := i + 1
		for j < len(text) && tokenClass(text[j]) == class {
			j++
		}
		n += class.cost(j - i)
		i = j
	}
	return n
}

type textClass uint8

const (
	blanks textClass = iota
	letters
	digits
	marks
	wide
	continued // the rest of a character beyond ASCII
)

func tokenClass(c byte) textClass {
	switch {
	case c >= 0xC0:
		return wide
	case c >= 0x80:
		return continued
	case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		return blanks
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return letters
	case c >= '0' && c <= '9':
		return digits
	}
	return marks
}

func (c textClass) cost(length int) int {
	switch c {
	case blanks:
		return (length - 1 + 3) / 4
	case letters:
		return (length + 5) / 6
	case digits:
		return (length + 2) / 3
	case marks:
		return (length + 1) / 2
	case wide:
		return length
	}
	return 0
}

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
	e := Explanation{Budget: s.opt.TokenBudget, Meta: Tokens([]byte(metaTool)), Rows: []ServerCosts{}}
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
		cost := Tokens(t.def) + Tokens([]byte(shown)) - Tokens([]byte(t.name))
		rows[t.src].Tools++
		rows[t.src].Tokens += cost
		e.Tokens += cost
	}
	return e
}
