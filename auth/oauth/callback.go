package oauth

import (
	"fmt"
	"net/url"

	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

// Callback is what came back from a consent page.
type Callback struct {
	State string
	Code  vault.Secret
	// Iss is the authorization server's name for itself (RFC 9207), if HasIss.
	Iss    string
	HasIss bool
	// Error and Words are the server's refusal. They are not to be shown before
	// Complete has checked where they come from.
	Error string
	Words string
	// Principal is whose browser brought the answer, where the caller knows: a
	// login that somebody else began is then unknown. Empty: not known.
	Principal string
}

// ReadCallback takes the parameters of a redirect apart. A parameter that stands
// twice makes the whole unreadable.
func ReadCallback(q url.Values) (Callback, error) {
	for _, name := range []string{"state", "code", "iss", "error", "error_description"} {
		if len(q[name]) > 1 {
			return Callback{}, fmt.Errorf("%w: it has %s twice", ErrBadPaste, name)
		}
	}
	for name, most := range map[string]int{"state": limit.LoginState, "code": limit.LoginCode, "iss": limit.LoginCode, "error": limit.LoginState, "error_description": limit.LoginCode} {
		if len(q.Get(name)) > most {
			return Callback{}, fmt.Errorf("%w: its %s is too long", ErrBadPaste, name)
		}
	}
	return Callback{
		State: q.Get("state"), Code: vault.NewSecret(q.Get("code")), Iss: q.Get("iss"), HasIss: q.Has("iss"),
		Error: q.Get("error"), Words: q.Get("error_description"),
	}, nil
}
