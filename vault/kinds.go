package vault

// The kinds of records. A kind that [HoldsSecrets] does not list as plain is
// encrypted; see [keys.Sealed] for how the plain ones are authenticated.
const (
	KindGrant    = "grant"    // tokens of a login
	KindClient   = "client"   // a client registration, perhaps with its secret
	KindPending  = "pending"  // a login that waits for a person, with its verifier
	KindSecret   = "secret"   // a value for ${secret:NAME} and ${input:ID}
	KindApproval = "approval" // a definition a person has approved
	KindEra      = "era"      // the protocol era a server was last seen to speak
	KindCatalog  = "catalog"  // a server's last known tools
	KindPin      = "pin"      // the hash of a tool's definition
	KindBudget   = "budget"   // counters of calls and tokens
	KindStep     = "step"     // remembered step-up attempts
	KindSending  = "sending"  // a refresh token that is about to be sent, without the token
	KindToken    = "token"    // the hash of a token that authenticates a client
	KindGateway  = "gateway"  // what gateways behind one address share
	KindKey      = "key"      // the data key, itself wrapped by the master key
	KindAudit    = "audit"    // the key that authenticates audit blocks
)

// Expendable says whether records of kind can be learned again, so that a store need
// not wait for the disk to write them: a power failure may cost those of the last
// seconds.
func Expendable(kind string) bool { return kind == KindEra || kind == KindCatalog }

// HoldsSecrets says whether records of kind must be sealed before they reach a
// store that lasts. It says yes to every kind it does not know, so that a
// forgotten new kind is sealed, not exposed.
func HoldsSecrets(kind string) bool {
	switch kind {
	case KindApproval, KindEra, KindCatalog, KindPin, KindBudget, KindStep, KindSending, KindToken:
		return false
	case KindKey:
		// Wrapped by the master key already; sealing it with itself would lock
		// the key inside.
		return false
	}
	return true
}

// Authenticated says whether records of kind are stored as they are but carry a
// message authentication code: all that hold no secret, except the ring of keys,
// whose parts the master key authenticates.
func Authenticated(kind string) bool { return !HoldsSecrets(kind) && kind != KindKey }
