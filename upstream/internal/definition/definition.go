// Package definition limits what one definition of a server (a tool, prompt or resource)
// may make every later reader read: its size, depth, number of values and the length of
// its name. [Excess] says which limit a definition exceeds. It does no I/O.
package definition

import (
	"fmt"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
)

// Excess says which limit a definition exceeds, "" for none.
func Excess(key string, raw []byte) string {
	if n := len(raw); n > limit.DefinitionSize {
		return fmt.Sprintf("it has %d bytes, more than %d", n, limit.DefinitionSize)
	}
	depth, values := jsonx.Extent(raw)
	switch {
	case depth > limit.DefinitionDepth:
		return fmt.Sprintf("it nests %d levels deep, more than %d", depth, limit.DefinitionDepth)
	case values > limit.DefinitionValues:
		return fmt.Sprintf("it has %d members and elements, more than %d", values, limit.DefinitionValues)
	}
	member, most := identifier(key)
	if id, _ := jsonx.Get(raw, member); len(id) > most+len(`""`) {
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
