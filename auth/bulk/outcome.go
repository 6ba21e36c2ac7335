package bulk

import (
	"github.com/usher-mcp/usher/auth"
)

// Mode says which accounts a login is begun for.
type Mode string

// The modes.
const (
	// ModeMissing skips accounts that have a usable grant.
	ModeMissing Mode = "missing"
	// ModeExpired takes only accounts with a grant that cannot be made valid.
	ModeExpired Mode = "expired"
	// ModeAll takes all.
	ModeAll Mode = "all"
)

// Reasons for which accounts are skipped, beside those that say why a server needs
// no person.
const (
	ReasonConnected  = "already connected"
	ReasonNoToken    = "no stored token"
	ReasonStillValid = "token still valid"
	ReasonTwice      = "named twice"
)

// Status is how the preparation of one account ended.
type Status string

// The statuses.
const (
	StatusPending Status = "pending" // waits for a person
	StatusSkipped Status = "skipped"
	StatusFailed  Status = "failed"
)

// Outcome is what became of one target of [Driver.Prepare].
type Outcome struct {
	Status Status
	// Server is the account as a person writes it, `linear` or `linear@work`.
	Server    string
	ServerURL string // without credentials
	// Login is set when the outcome is pending. Its Device is set when the person
	// gets a code to type in, and AuthorizeURL otherwise.
	Login auth.Pending
	// Joined says that the login was begun before, perhaps by another process.
	Joined bool
	// Reason is why it was skipped.
	Reason string
	// Err is why it failed. Show [Outcome.Problem].
	Err error
}

// Problem is why it failed, fit to be shown: on one line and without secrets; "" when
// it did not.
func (o Outcome) Problem() string {
	if o.Err == nil {
		return ""
	}
	return redact(o.Err.Error())
}

// Issuer is the authorization server that the login waits at; "" if there is none.
func (o Outcome) Issuer() string { return o.Login.Issuer }
