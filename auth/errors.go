package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/usher-mcp/usher/auth/oauth"
)

// Errors that callers branch on.
var (
	// ErrNeedsLogin: a person has to log in, see [NeedsLoginError].
	ErrNeedsLogin = errors.New("login required")
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
	// ErrStepUp: the server keeps asking for more permission than it is given.
	ErrStepUp = errors.New("the server keeps asking for more permission")
	// ErrNoFlow: this flow is not possible here.
	ErrNoFlow = errors.New("this way to log in is not possible here")
	// ErrClosed: the engine was closed.
	ErrClosed = errors.New("the login engine is closed")
)

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

// NeedsLoginError says why a person has to log in and with which command. It is
// [ErrNeedsLogin].
type NeedsLoginError struct {
	Account Account
	// Reason is for people, without secrets.
	Reason string
	// Command is the next step, such as "usher login linear@work".
	Command string
	// Scopes is what the next login will ask for when the server wants more
	// permission; nil otherwise.
	Scopes []string
}

func (e *NeedsLoginError) Error() string {
	return fmt.Sprintf("%s: %v: %s; run `%s`", e.Account, ErrNeedsLogin, e.Reason, e.Command)
}

// Is makes errors.Is(err, ErrNeedsLogin) hold.
func (e *NeedsLoginError) Is(target error) bool { return target == ErrNeedsLogin }

func needsLogin(a Account, format string, args ...any) *NeedsLoginError {
	return &NeedsLoginError{Account: a, Reason: fmt.Sprintf(format, args...), Command: a.command()}
}

// UnavailableError says that a login could not be renewed for a reason that will
// pass. Nothing is lost. It is [ErrUnavailable].
type UnavailableError struct {
	Account Account
	Reason  string
	// RetryAfter is how long nothing will be tried.
	RetryAfter time.Duration
	Err        error // the cause, if there is one beyond Reason
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("renew the login of %s: %v: %s (the login is kept; next try in %v)",
		e.Account, oauth.ErrUnavailable, e.Reason, e.RetryAfter.Round(time.Second))
}

// Is makes errors.Is(err, ErrUnavailable) hold.
func (e *UnavailableError) Is(target error) bool { return target == oauth.ErrUnavailable }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

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
