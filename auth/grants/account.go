package grants

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/vault"
)

// Account is what owns a grant: one identity of one principal at one server.
type Account struct {
	// Principal is whose it is; empty means vault.Local.
	Principal string
	// Server is the configured name of the server.
	Server string
	// Label tells several identities apart (`work` in `linear@work`); empty for
	// the only or default one.
	Label string
}

// ParseAccount splits `server` or `server@label` without a check: for names that usher
// wrote itself. What a user writes is read with config.ParseAccount.
func ParseAccount(principal, text string) Account {
	server, label := config.SplitAccount(text)
	return Account{Principal: principal, Server: server, Label: label}
}

// String returns `server` or `server@label`.
func (a Account) String() string { return config.AccountName(a.Server, a.Label) }

// principal is the one to use in keys.
func (a Account) principal() string { return cmp.Or(a.Principal, vault.Local) }

// Normal returns a with the principal written out, so that equal accounts compare equal.
func (a Account) Normal() Account {
	a.Principal = a.principal()
	return a
}

// Key is the key of the account's record of a kind.
func (a Account) Key(kind string) vault.Key {
	return vault.Key{Kind: kind, Principal: a.principal(), Name: a.String()}
}

// LoginCommand is what a user types to log in.
func (a Account) LoginCommand() string { return "usher login " + a.String() }

func (a Account) header() event.Header {
	h := event.Header{Server: a.Server, Account: a.Label}
	if p := a.principal(); p != vault.Local {
		h.Principal = p
	}
	return h
}

// RecordName turns any text into one that fits into the name of a record.
func RecordName(s string) string {
	if len(s) <= 200 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return oauth.Clean(s, 100) + " " + hex.EncodeToString(sum[:8])
}

// LogAttrs are attributes that name the account in a log line.
func (a Account) LogAttrs() []any {
	out := []any{"server", a.Server}
	if a.Label != "" {
		out = append(out, "account", a.Label)
	}
	if a.principal() != vault.Local {
		out = append(out, "principal", a.principal())
	}
	return out
}
