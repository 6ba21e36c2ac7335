package bulk

import (
	"time"

	"github.com/usher-mcp/usher/auth"
)

// Phase is how far the login of one account is. Phases run discovering →
// awaiting_consent → exchanging → connected, or end in skipped or failed.
type Phase string

// The phases.
const (
	// PhaseQueued is that of a row whose turn has not come. There is no event of it.
	PhaseQueued      Phase = "queued"
	PhaseDiscovering Phase = "discovering"
	PhaseAwaiting    Phase = "awaiting_consent"
	PhaseExchanging  Phase = "exchanging"
	PhaseConnected   Phase = "connected"
	PhaseFailed      Phase = "failed"
	PhaseSkipped     Phase = "skipped"
)

// Ended reports whether nothing follows.
func (p Phase) Ended() bool {
	return p == PhaseConnected || p == PhaseFailed || p == PhaseSkipped
}

// Event says that an account came to a phase.
type Event struct {
	// Server is the account as a person writes it.
	Server    string `json:"server"`
	ServerURL string `json:"server_url"`
	Phase     Phase  `json:"phase"`
	// Detail is for people: why it failed or was skipped, or what is odd about it.
	// It holds no secrets, and is foreign text in part: a caller that shows it escapes it.
	Detail string `json:"detail,omitempty"`
	// Seconds is how long ago work on the account began, to the millisecond.
	Seconds float64 `json:"seconds"`
}

// Row is where one account stands.
type Row struct {
	Event
	Account auth.Account
	// Issuer is the authorization server; "" while it is not known.
	Issuer string
	// Since is when it came to this phase.
	Since time.Time
	// Login is the login that waits; nil when there is none.
	Login *auth.Pending
}
