package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

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
		e.callback(w, r, principal)
	})
}

// callback answers one request at the redirect address.
func (e *Engine) callback(w http.ResponseWriter, r *http.Request, principal string) {
	cb, ok := readRequest(w, r)
	if !ok {
		return
	}
	cb.Principal = principal
	select {
	case e.answers <- struct{}{}:
		defer func() { <-e.answers }()
	default:
		writePage(w, http.StatusServiceUnavailable, pageLater)
		return
	}
	err := e.completeOnce(r.Context(), cb)
	if writeOutcome(w, err) == pageLater {
		e.log.Warn("a login could not be finished", "error", err)
	}
}

// readRequest reads the answer out of a request; false when it was none, and has got
// its page.
func readRequest(w http.ResponseWriter, r *http.Request) (cb Callback, ok bool) {
	switch {
	case r.Method == http.MethodHead || r.Method == http.MethodOptions:
		writePage(w, http.StatusOK, pageStray) // looks, and must not consume
		return cb, false
	case r.Method != http.MethodGet:
		writePage(w, http.StatusMethodNotAllowed, pageStray)
		return cb, false
	case speculative(r.Header):
		// The browser asks again when the person really goes there.
		writePage(w, http.StatusServiceUnavailable, pageStray)
		return cb, false
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil {
		cb, err = oauth.ReadCallback(q)
	}
	if err != nil {
		writePage(w, http.StatusBadRequest, pageStray)
	}
	return cb, err == nil
}

// completeOnce is Complete for a browser, which may ask twice: the second time it
// gets to see how the first one ended, also when another process that shares the store
// was faster, as happens behind a balancer.
func (e *Engine) completeOnce(ctx context.Context, cb Callback) error {
	if out, ok := e.waiting.ended(cb.State); ok {
		return out.err
	}
	p, _ := e.findPending(ctx, cb.State) // Complete says what is wrong with it
	_, err := e.Complete(ctx, cb)
	if out, ok := e.waiting.ended(cb.State); ok && errors.Is(err, ErrUnknownState) {
		return out.err
	}
	faster := errors.Is(err, ErrBeingCompleted) || errors.Is(err, ErrUnknownState)
	if !faster || p == nil || !p.awaits(cb) {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, oauth.TokenTimeout)
	defer stop()
	if _, ended := e.await(ctx, p); ctx.Err() == nil {
		return ended
	}
	return err
}

// speculative reports requests that a browser makes before anybody asked for them.
func speculative(h http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		v := strings.ToLower(h.Get(name))
		if strings.Contains(v, "prefetch") || strings.Contains(v, "prerender") || strings.Contains(v, "preview") {
			return true
		}
	}
	return false
}

// writeOutcome shows how a login ended.
func writeOutcome(w http.ResponseWriter, err error) page {
	switch {
	case err == nil:
		return writePage(w, http.StatusOK, pageDone)
	case errors.Is(err, ErrUnknownState), errors.Is(err, ErrIssuer), errors.Is(err, ErrBadPaste):
		return writePage(w, http.StatusBadRequest, pageStray)
	case errors.Is(err, ErrDenied), errors.Is(err, ErrRefused):
		return writePage(w, http.StatusOK, pageFailed)
	}
	return writePage(w, http.StatusServiceUnavailable, pageLater)
}
