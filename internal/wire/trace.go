package wire

import (
	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// TraceMeta carries a trace context in the `_meta` of params, where the
// specification has it; it is a carrier as the propagators of OpenTelemetry want one.
type TraceMeta struct {
	Meta  []byte // the object, nil for none
	edits []jsonx.Edit
}

// Get returns a member that is a string, "" when there is none.
func (t *TraceMeta) Get(key string) string { return jsonx.GetText(t.Meta, key) }

// Set notes a member for [TraceMeta.Into].
func (t *TraceMeta) Set(key, value string) {
	t.edits = append(t.edits, jsonx.Edit{Key: key, Value: jsonx.Quote(value)})
}

// Keys are the members that may be there.
func (t *TraceMeta) Keys() []string {
	return []string{mcp.MetaTraceParent, mcp.MetaTraceState, mcp.MetaBaggage}
}

// Into returns params with the noted members in their `_meta`. A state that belongs
// to another parent is taken out.
func (t *TraceMeta) Into(params []byte) []byte {
	if len(t.edits) == 0 {
		return params
	}
	return EditMeta(params, append([]jsonx.Edit{{Key: mcp.MetaTraceState}}, t.edits...)...)
}
