package grants

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
	// ErrStepUp: the server keeps asking for more permission than it is given.
	ErrStepUp = errors.New("the server keeps asking for more permission")
	// ErrClosed: the engine was closed.
	ErrClosed = errors.New("the login engine is closed")
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
	return fmt.Sprintf("%s: %v: %s", e.Account, ErrNeedsLogin, e.Reason)
}

// Hint is the next step. Programs with a command line show Command instead.
func (e *NeedsLoginError) Hint() string { return "log in to " + e.Account.String() }

// Is makes errors.Is(err, ErrNeedsLogin) hold.
func (e *NeedsLoginError) Is(target error) bool { return target == ErrNeedsLogin }

func needsLogin(a Account, format string, args ...any) *NeedsLoginError {
	return &NeedsLoginError{Account: a, Reason: fmt.Sprintf(format, args...), Command: a.LoginCommand()}
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

// NeedsPerson reports whether err is one that only a person can do something about.
func NeedsPerson(err error) bool { return errors.Is(err, ErrNeedsLogin) || errors.Is(err, ErrStepUp) }
