package bulk

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/vault"
)

// ErrNotNeeded is what [Engine.Begin] returns for a server that asks nobody to log
// in. It makes the outcome a skipped one.
var ErrNotNeeded = errors.New("the server asks for no login")

// Target is one account to log in.
type Target struct {
	Account auth.Account
	// Server is the account's server with its placeholders filled in. One with a
	// Problem fails with it.
	Server config.Server
}

// Redirect says how answers come back to usher. The zero value means by paste.
type Redirect struct {
	// URI is the address that consent pages send the browser to. Default: what the
	// server's configuration says, else a loopback address.
	URI string
	// Listen makes this process answer at the loopback address.
	Listen bool
	// Courier lists loopback addresses on the person's own machine at which answers
	// are taken and carried here. The first is for logins that may come back to any;
	// the others are such as the configuration of a server names.
	Courier []string
	// Device prefers a code on another screen where the server offers that.
	Device bool
	// Fresh begins again even where a login of the account waits already, which is
	// then given up. Without it that login is joined.
	Fresh bool
}

// Standing is what is stored for an account.
type Standing struct {
	// Stored says that there is a grant, good or bad.
	Stored bool
	// Usable says that requests can be made with it, now.
	Usable bool
	Issuer string // of the grant, if it is known
}

// Engine is what the driver needs to log one account in. [NewEngine] makes the real
// one. All methods may be called from any goroutine, and return soon after ctx ends:
// one that does not is left behind.
type Engine interface {
	// Standing looks at what is stored for an account, and renews it first if that
	// is due and possible without a person. An error means that it is not known.
	Standing(ctx context.Context, t Target) (Standing, error)

	// Alone runs f while no other process runs its own for the same account, so that
	// two that look at the same moment do not both begin a login.
	Alone(ctx context.Context, t Target, f func(context.Context) error) error

	// Begin starts a login. It calls resolved once it knows the authorization
	// server, before it registers or writes anything down.
	Begin(ctx context.Context, t Target, r Redirect, resolved func()) (auth.Pending, error)

	// Complete finishes a login, as auth.Engine's does: once.
	Complete(ctx context.Context, cb auth.Callback) (*auth.Login, error)

	// Paste finishes the login with this state by a text that a person pasted.
	Paste(ctx context.Context, state, text string) (*auth.Login, error)

	// Wait returns when a login ended, here or in another process, or ran out.
	Wait(ctx context.Context, p auth.Pending) (*auth.Login, error)

	// Waiting lists the logins that wait for a person, of all processes.
	Waiting(ctx context.Context) ([]auth.Pending, error)

	// Joinable reports whether a waiting login can stand for a new one: whether its
	// answer would reach somebody who can finish it.
	Joinable(ctx context.Context, p auth.Pending, r Redirect) bool

	// Cancel gives up a login; no error if it is gone already.
	Cancel(ctx context.Context, state string) error
}

// needless says why a target needs no person; "" when it may.
func needless(t Target) string {
	switch {
	case t.Server.Transport == config.TransportStdio:
		return "a local program, takes its credentials from env"
	case hasHeader(t.Server.Headers, "Authorization"):
		return "has a configured Authorization header"
	case t.Server.OAuth == nil:
		return ""
	}
	switch g := t.Server.OAuth.Grant; g {
	case config.GrantClientCredentials, config.GrantJWTBearer, config.GrantEnterprise:
		return "logs in without a person (" + g + ")"
	}
	return ""
}

func hasHeader(headers map[string]string, name string) bool {
	for k := range headers {
		if strings.EqualFold(k, name) {
			return true
		}
	}
	return false
}

// normal has the principal written out, so that equal accounts compare equal.
func normal(a auth.Account) auth.Account {
	a.Principal = cmp.Or(a.Principal, vault.Local)
	return a
}

// shown is a server's address without the credentials it may hold.
func shown(s config.Server) string { return config.Server{Name: s.Name, URL: s.URL}.Masked().URL }
