package auth

import (
	"context"
	"errors"
	"net/http"

	"github.com/usher-mcp/usher/auth/loopback"
	"github.com/usher-mcp/usher/auth/oauth"
)

// CallbackHandler takes the answers of consent pages, for a gateway that serves
// them at its public address. It is as indifferent to strangers as the loopback
// listener is: only a GET with the state of a waiting login does anything. Who says
// whose browser a request comes from, so that nobody finishes a login that somebody
// else began; nil does not ask.
func (e *Engine) CallbackHandler(who func(*http.Request) (principal string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		principal := ""
		if who != nil {
			principal = who(r)
		}
		e.completer.serve(w, r, principal)
	})
}

// serve answers one request at the redirect address.
func (co *completer) serve(w http.ResponseWriter, r *http.Request, principal string) {
	cb, ok := loopback.ReadRequest(w, r)
	if !ok {
		return
	}
	cb.Principal = principal
	select {
	case co.slots <- struct{}{}:
		defer func() { <-co.slots }()
	default:
		loopback.WriteOutcome(w, loopback.Retry)
		return
	}
	err := co.completeOnce(r.Context(), cb)
	outcome := CallbackOutcome(err)
	loopback.WriteOutcome(w, outcome)
	if outcome == loopback.Retry {
		co.Log.Warn("a login could not be finished", "error", err)
	}
}

// completeOnce is Complete for a browser, which may ask twice: the second time it
// gets to see how the first one ended, also when another process that shares the store
// was faster, as happens behind a balancer.
func (co *completer) completeOnce(ctx context.Context, cb Callback) error {
	if out, ok := co.pendings.waiting.ended(cb.State); ok {
		return out.err
	}
	p, _ := co.pendings.find(ctx, cb.State) // Complete says what is wrong with it
	_, err := co.complete(ctx, cb)
	if out, ok := co.pendings.waiting.ended(cb.State); ok && errors.Is(err, ErrUnknownState) {
		return out.err
	}
	faster := errors.Is(err, ErrBeingCompleted) || errors.Is(err, ErrUnknownState)
	if !faster || p == nil || !p.awaits(cb) {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, oauth.TokenTimeout)
	defer stop()
	if _, ended := co.pendings.await(ctx, p); ctx.Err() == nil {
		return ended
	}
	return err
}

// CallbackOutcome is what a browser may see of the error that [Engine.Complete] returned
// for its callback.
func CallbackOutcome(err error) loopback.Outcome {
	switch {
	case err == nil:
		return loopback.LoggedIn
	case errors.Is(err, ErrUnknownState), errors.Is(err, ErrIssuer), errors.Is(err, ErrBadPaste):
		return loopback.Unknown
	case errors.Is(err, ErrDenied), errors.Is(err, ErrRefused):
		return loopback.Failed
	}
	return loopback.Retry
}
