package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
)

// Errors that callers branch on. The concrete types carry the details.
var (
	// ErrUnauthorized: the server requires login, see [UnauthorizedError].
	ErrUnauthorized = errors.New("unauthorized")
	// ErrTransport: the connection failed, see [TransportError].
	ErrTransport = errors.New("transport failure")
	// ErrProtocol: the server broke the protocol, see [ProtocolError].
	ErrProtocol = errors.New("protocol violation")
	// ErrTooLarge: an answer was larger than the limit; the connection lives on.
	ErrTooLarge = errors.New("answer too large")
	// ErrLimit: the server exceeded one of the limits in package limit. The error is an
	// ErrProtocol as well.
	ErrLimit = errors.New("limit exceeded")
	// ErrRateLimited: the server asked to wait, see [RateLimitedError].
	ErrRateLimited = errors.New("rate limited")
	// ErrClosed: the connection was closed by this side.
	ErrClosed = errors.New("connection closed")
)

// TransportError says that the connection failed while a request was in flight.
type TransportError struct {
	Server  string
	Op      string // what was being done: "connect", "send", "receive"
	Written bool   // the request may have reached the server: its outcome is unknown
	Err     error
}

func (e *TransportError) Error() string {
	if e.Written {
		return fmt.Sprintf("%s: %s (the request had been sent): %v", e.Server, e.Op, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Server, e.Op, e.Err)
}

// Is makes errors.Is(err, ErrTransport) hold.
func (e *TransportError) Is(target error) bool { return target == ErrTransport }

func (e *TransportError) Unwrap() error { return e.Err }

// ProtocolError says that the server sent something that the protocol forbids.
type ProtocolError struct {
	Server string
	Msg    string
	Err    error
}

func (e *ProtocolError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Server, e.Msg, e.Err)
	}
	return e.Server + ": " + e.Msg
}

// Is makes errors.Is(err, ErrProtocol) hold.
func (e *ProtocolError) Is(target error) bool { return target == ErrProtocol }

func (e *ProtocolError) Unwrap() error { return e.Err }

// TooLargeError says that an answer was above the server's maxMessageBytes.
type TooLargeError struct {
	Server string
	Limit  int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: the answer is larger than %d bytes; raise maxMessageBytes for this server if that is expected", e.Server, e.Limit)
}

// Is makes errors.Is(err, ErrTooLarge) hold.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// UnauthorizedError carries what the server said when it refused: 401, 403 with
// insufficient_scope, or another status with invalid_token, as some servers have it.
type UnauthorizedError struct {
	Server     string
	Status     int
	challenges []wire.Challenge
}

func (e *UnauthorizedError) Error() string {
	if e.InsufficientScope() {
		return fmt.Sprintf("%s: HTTP %d: more permission is needed (scope %q)", e.Server, e.Status, e.Param("scope"))
	}
	return fmt.Sprintf("%s: HTTP %d: login required", e.Server, e.Status)
}

// Is makes errors.Is(err, ErrUnauthorized) hold.
func (e *UnauthorizedError) Is(target error) bool { return target == ErrUnauthorized }

// Param returns a parameter of the first Bearer or DPoP challenge that has it.
func (e *UnauthorizedError) Param(name string) string {
	for _, c := range e.challenges {
		if v := c.Params[name]; v != "" && (c.Scheme == "bearer" || c.Scheme == "dpop") {
			return v
		}
	}
	return ""
}

// InsufficientScope reports whether the token was fine but too narrow.
func (e *UnauthorizedError) InsufficientScope() bool {
	return e.Status == http.StatusForbidden && e.Param("error") == "insufficient_scope"
}

// RateLimitedError says how long the server wants to be left alone.
type RateLimitedError struct {
	Server     string
	RetryAfter time.Duration // 0 when the server did not say
}

func (e *RateLimitedError) Error() string {
	if e.RetryAfter > 0 {
		return fmt.Sprintf("%s: HTTP 429: too many requests, retry in %s", e.Server, e.RetryAfter)
	}
	return e.Server + ": HTTP 429: too many requests"
}

// Is makes errors.Is(err, ErrRateLimited) hold.
func (e *RateLimitedError) Is(target error) bool { return target == ErrRateLimited }

// StatusError is an HTTP answer that is neither MCP nor one of the cases above.
type StatusError struct {
	Server string
	Status int
	What   string // how the body looked: content type or "no body"; never the body
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: HTTP %d %s (%s)", e.Server, e.Status, http.StatusText(e.Status), e.What)
}

// Is makes gateway errors (502, 503, 504) transport failures and everything else
// a protocol violation.
func (e *StatusError) Is(target error) bool {
	if e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout {
		return target == ErrTransport
	}
	return target == ErrProtocol
}

// authorizeError says that a request got no credential, and was therefore not sent.
type authorizeError struct {
	server string
	err    error
}

func (e *authorizeError) Error() string { return e.server + ": " + e.err.Error() }

func (e *authorizeError) Unwrap() error { return e.err }

// MaybeSent reports whether the request that failed with err may have reached
// the server. When in doubt it did.
func MaybeSent(err error) bool {
	var te *TransportError
	if errors.As(err, &te) {
		return te.Written
	}
	var ae *authorizeError
	switch {
	case errors.As(err, &ae), errors.Is(err, ErrClosed), errors.Is(err, ErrUnauthorized), errors.Is(err, ErrRateLimited):
		return false
	}
	return true
}

// ended turns the end of a caller's context into words, and leaves other errors.
func ended(ctx context.Context, server, what string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fmt.Errorf("%s: no answer to %s in time: %w", server, what, context.DeadlineExceeded)
	}
	return fmt.Errorf("%s: %s: %w", server, what, context.Cause(ctx))
}
