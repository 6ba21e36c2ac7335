package auth

import (
	"errors"
	"fmt"

	"github.com/usher-mcp/usher/auth/grants"
	"github.com/usher-mcp/usher/auth/oauth"
)

// Errors that callers branch on.
var (
	// ErrUnknownState: no login waits for this answer. It may be finished, too
	// old, or somebody else's.
	ErrUnknownState = errors.New("no login waits for this answer")
	// ErrBeingCompleted: another process or request is finishing this login.
	ErrBeingCompleted = errors.New("this login is being completed already")
	// ErrIssuer: the answer names another authorization server than the one
	// asked. The pending login stays as it was.
	ErrIssuer = errors.New("the answer comes from another authorization server than the one asked")
	// ErrDenied: the person or the provider said no.
	ErrDenied = errors.New("the login was denied")
	// ErrExpired: the login was not finished in time.
	ErrExpired = errors.New("the login was not finished in time")
	// ErrReplaced: a newer login of the same account took this one's place.
	ErrReplaced = errors.New("a newer login of this account took its place")
	// ErrNoFlow: this flow is not possible here.
	ErrNoFlow = errors.New("this way to log in is not possible here")
)

// What the methods of [Engine] take and return of package grants.
type (
	// Account is what owns a grant: one identity of one principal at one server.
	Account = grants.Account
	// Options configure an [Engine]. The zero value works.
	Options = grants.Options
	// Flow is a way to log in.
	Flow = grants.Flow
	// Stats counts what an [Engine] did for logins since it was made.
	Stats = grants.Stats
	// NeedsLoginError says why a user has to log in and with which command. It is
	// [ErrNeedsLogin].
	NeedsLoginError = grants.NeedsLoginError
	// UnavailableError says that a login could not be refreshed for a reason that will
	// pass. Nothing is lost. It is [ErrUnavailable].
	UnavailableError = grants.UnavailableError
)

// The flows. The first is used with a browser on this machine, by paste-back and
// by a hosted callback: they differ only in how the answer comes back.
const (
	FlowCode              = grants.FlowCode
	FlowDevice            = grants.FlowDevice
	FlowClientCredentials = grants.FlowClientCredentials
	FlowJWTBearer         = grants.FlowJWTBearer
	FlowEnterprise        = grants.FlowEnterprise
)

// Errors of package grants that the methods of [Engine] return.
var (
	// ErrNeedsLogin: a user has to log in, see [NeedsLoginError].
	ErrNeedsLogin = grants.ErrNeedsLogin
	// ErrStepUp: the server keeps asking for more permission than it is given.
	ErrStepUp = grants.ErrStepUp
	// ErrClosed: the engine was closed.
	ErrClosed = grants.ErrClosed
)

// ParseAccount splits `server` or `server@label` without a check: for names that usher
// wrote itself. What a user writes is read with config.ParseAccount.
func ParseAccount(principal, text string) Account { return grants.ParseAccount(principal, text) }

// NeedsPerson reports whether err is one that only a user can do something about.
func NeedsPerson(err error) bool { return grants.NeedsPerson(err) }

// What the methods of [Engine] take and return of package oauth.
type (
	// Challenge is a server's refusal of a request.
	Challenge = oauth.Challenge
	// Callback is what came back from a consent page.
	Callback = oauth.Callback
	// Device is what a user needs for a login with a code on another screen.
	Device = oauth.Device
	// TokenError is a failure at a token, registration or device endpoint.
	TokenError = oauth.TokenError
)

// Errors of package oauth that the methods of [Engine] return.
var (
	// ErrBadPaste: the pasted text is not the answer to this login, which stays
	// as it was.
	ErrBadPaste = oauth.ErrBadPaste
	// ErrNoClient: there is no way to get a client id.
	ErrNoClient = oauth.ErrNoClient
	// ErrUnavailable: the authorization server or the store does not work right
	// now; the grant is kept and trying later is right. See [UnavailableError].
	ErrUnavailable = oauth.ErrUnavailable
	// ErrRefused: the authorization server said no, see [TokenError].
	ErrRefused = oauth.ErrRefused
	// ErrTooMany: a limit on logins was reached; see package internal/limit.
	ErrTooMany = oauth.ErrTooMany
)

// Where a client id came from.
const (
	// SourceConfigured: oauth.clientId.
	SourceConfigured = oauth.SourceConfigured
	// SourceDocument: oauth.clientMetadataUrl.
	SourceDocument = oauth.SourceDocument
	// SourceDynamic: registered at the authorization server by this program.
	SourceDynamic = oauth.SourceDynamic
)

// DeniedError carries the provider's words from a callback whose origin was
// verified. It is [ErrDenied]. The words are foreign: a caller that shows them
// escapes them for the medium; control characters are gone already.
type DeniedError struct {
	Account Account
	Code    string // such as access_denied
	Words   string // the provider's description, perhaps empty
	Hint    string // the next step
}

func (e *DeniedError) Error() string {
	msg := fmt.Sprintf("login to %s: the authorization server answered %s", e.Account, e.Code)
	if e.Words != "" {
		msg += ": " + e.Words
	}
	if e.Hint != "" {
		msg += "; " + e.Hint
	}
	return msg
}

// Is makes errors.Is(err, ErrDenied) hold.
func (e *DeniedError) Is(target error) bool { return target == ErrDenied }
