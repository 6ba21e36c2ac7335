package policy

import (
	"cmp"

	"github.com/usher-mcp/usher/host"
)

// Caller is who a request acts for. Every verb of a [Gate] takes a Caller and checks
// it in the same place; see [Gate.allow]. The zero value is the local user without
// a scope.
type Caller struct {
	// Principal is whose accounts, pins and private results are used. It replaces
	// the principal of every [Key] that comes with the Caller. Default "local".
	Principal string
	// Credential is the id of the token or client that authenticated the caller, for
	// audit records. Empty: there is none.
	Credential string
	// Scope narrows what exists for the caller. Nil: everything that the rules allow.
	Scope *Scope
	// Session counts the calls of the session or connection that the request belongs
	// to, see usher.budgets.session. Nil: it belongs to none.
	Session *Session
}

// As returns the caller without a scope that acts as a principal, for work of the
// program itself.
func As(principal string) Caller { return Caller{Principal: principal} }

func (c *Caller) principal() string { return cmp.Or(c.Principal, host.Local) }

// own returns k as a key of the caller.
func (c *Caller) own(k Key) Key {
	k.Principal = c.principal()
	return k
}
