package wire

// Protocol revisions, oldest first.
const (
	V20241105 = "2024-11-05"
	V20250326 = "2025-03-26"
	V20250618 = "2025-06-18"
	V20251125 = "2025-11-25"
	V20260728 = "2026-07-28"
)

// Newest and NewestLegacy are what a client offers first in each era.
const (
	Newest       = V20260728
	NewestLegacy = V20251125
)

// Versions returns all revisions that usher speaks, newest first.
func Versions() []string {
	return []string{V20260728, V20251125, V20250618, V20250326, V20241105}
}

// Known reports whether v is a revision that usher speaks.
func Known(v string) bool {
	switch v {
	case V20241105, V20250326, V20250618, V20251125, V20260728:
		return true
	}
	return false
}

// Modern reports whether v belongs to the era without handshake and sessions.
// Revisions are dates, so later ones compare greater.
func Modern(v string) bool { return v >= V20260728 }

// Keys of `_meta`.
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo   = "io.modelcontextprotocol/clientInfo"
	MetaClientCaps   = "io.modelcontextprotocol/clientCapabilities"
	MetaServerInfo   = "io.modelcontextprotocol/serverInfo"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
	MetaProgress     = "progressToken"
	MetaTraceParent  = "traceparent"
	MetaTraceState   = "tracestate"
	MetaBaggage      = "baggage"
)

// HTTP headers.
const (
	HeaderVersion     = "Mcp-Protocol-Version"
	HeaderSession     = "Mcp-Session-Id"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderLastEvent   = "Last-Event-Id"
)

// Values of a result's `resultType`. An absent one means complete.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
	ResultTask          = "task"
)
