package oauth

import "errors"

// Errors that callers branch on.
var (
	// ErrBadPaste: the pasted text is not the answer to this login, which stays
	// as it was.
	ErrBadPaste = errors.New("the pasted text is not the answer to this login")
	// ErrNoClient: there is no way to get a client id.
	ErrNoClient = errors.New("no client id")
	// ErrUnavailable: the authorization server or the store does not work right
	// now; trying later is right.
	ErrUnavailable = errors.New("not possible right now")
	// ErrRefused: the authorization server said no, see [TokenError].
	ErrRefused = errors.New("refused by the authorization server")
	// ErrTooMany: a limit on logins was reached; see package internal/limit.
	ErrTooMany = errors.New("too many, or too large")
)
