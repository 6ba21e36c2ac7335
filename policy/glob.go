package policy

import "github.com/usher-mcp/usher/internal/pattern"

// glob is a compiled pattern of a rule.
type glob struct {
	exact  pattern.Pattern
	folded pattern.Pattern // what a deny rule tries as well, see fold
}

func compileGlob(p string) glob {
	exact := pattern.Compile(p)
	return glob{exact: exact, folded: exact.Fold(foldPattern)}
}

// matches compares byte for byte, as an allow rule does.
func (g *glob) matches(name string) bool { return g.exact.Match(name) }

// catches compares as a deny rule does; folded is fold(name).
func (g *glob) catches(name, folded string) bool {
	return g.exact.Match(name) || g.folded.Match(folded)
}

// all reports whether the pattern stands for every name.
func (g *glob) all() bool { return g.exact.All() }
