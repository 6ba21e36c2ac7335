package upstream

import (
	"fmt"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
)

// leftOut counts the definitions of a list that exceed a limit. They are left out of
// it, and the others stay usable.
type leftOut struct {
	count int
	first string // why the first one was
}

// exceeds reports whether a definition, in a list under key, is larger than anything
// further on has to read, and counts it.
func (l *leftOut) exceeds(key string, definition []byte) bool {
	why := excess(key, definition)
	if why == "" {
		return false
	}
	if l.count++; l.count == 1 {
		l.first = why
	}
	return true
}

// excess says which limit a definition exceeds, "" for none.
func excess(key string, definition []byte) string {
	if n := len(definition); n > limit.DefinitionSize {
		return fmt.Sprintf("it has %d bytes, more than %d", n, limit.DefinitionSize)
	}
	depth, values := jsonx.Extent(definition)
	switch {
	case depth > limit.DefinitionDepth:
		return fmt.Sprintf("it nests %d levels deep, more than %d", depth, limit.DefinitionDepth)
	case values > limit.DefinitionValues:
		return fmt.Sprintf("it has %d members and elements, more than %d", values, limit.DefinitionValues)
	}
	member, most := identifier(key)
	if id, _ := jsonx.Get(definition, member); len(id) > most+len(`""`) {
		return fmt.Sprintf("its %s has %d bytes, more than %d", member, len(id), most)
	}
	return ""
}

// identifier is the member by which the items of a list are named, and how long it
// may be.
func identifier(key string) (member string, most int) {
	switch key {
	case "resources":
		return "uri", limit.URISize
	case "resourceTemplates":
		return "uriTemplate", limit.URISize
	}
	return "name", limit.NameSize
}

// warnLeftOut says once per list how many definitions were left out.
func (c *Conn) warnLeftOut(method string, l leftOut) {
	if l.count > 0 {
		c.log.Warn("definitions are left out: they exceed a limit", "list", method, "count", l.count, "first", l.first)
	}
}
