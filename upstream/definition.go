package upstream

import "github.com/usher-mcp/usher/upstream/internal/definition"

// leftOut counts the definitions of a list that exceed a limit. They are left out of
// it, and the others stay usable.
type leftOut struct {
	count int
	first string // why the first one was
}

// exceeds reports whether a definition, in a list under key, is larger than anything
// further on has to read, and counts it.
func (l *leftOut) exceeds(key string, raw []byte) bool {
	why := definition.Excess(key, raw)
	if why == "" {
		return false
	}
	if l.count++; l.count == 1 {
		l.first = why
	}
	return true
}

// warnLeftOut says once per list how many definitions were left out.
func (c *Conn) warnLeftOut(method string, l leftOut) {
	if l.count > 0 {
		c.log.Warn("definitions are left out: they exceed a limit", "list", method, "count", l.count, "first", l.first)
	}
}
