package mcp

// Protocol revisions, oldest first.
const (
	V20241105 = "2024-11-05"
	V20250326 = "2025-03-26"
	V20250618 = "2025-06-18"
	V20251125 = "2025-11-25"
	V20260728 = "2026-07-28"
)

// Latest and LatestLegacy are what a client offers first in each era.
const (
	Latest       = V20260728
	LatestLegacy = V20251125
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

// Stateless reports whether v belongs to the era without handshake and sessions.
// Revisions are dates, so later ones compare greater.
func Stateless(v string) bool { return v >= V20260728 }

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

// Values of a result's `resultType`. An absent one means complete.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
	ResultTask          = "task"
)
