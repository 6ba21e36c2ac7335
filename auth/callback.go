package auth

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"
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
		cb, err = ReadCallback(q)
	}
	if err != nil {
		writePage(w, http.StatusBadRequest, pageStray)
	}
	return cb, err == nil
}

// completeOnce is Complete for a browser, which may ask twice: the second time it
// gets to see how the first one ended.
func (e *Engine) completeOnce(ctx context.Context, cb Callback) error {
	if out, ok := e.waiting.ended(cb.State); ok {
		return out.err
	}
	_, err := e.Complete(ctx, cb)
	if !errors.Is(err, ErrBeingCompleted) && !errors.Is(err, ErrUnknownState) {
		return err
	}
	if errors.Is(err, ErrUnknownState) {
		if out, ok := e.waiting.ended(cb.State); ok {
			return out.err
		}
		return err
	}
	timer := time.NewTimer(tokenTimeout)
	defer timer.Stop()
	w := e.waiting.of(cb.State)
	select {
	case <-w.done:
		return w.out.err
	case <-timer.C:
	case <-ctx.Done():
	case <-e.life.Done():
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

// page is what a person gets to see. All of it is fixed: nothing from a request or
// from a provider ever appears.
type page struct{ Title, Text string }

var (
	pageDone   = page{"You are logged in", "usher has stored the login. You can close this window."}
	pageFailed = page{"The login did not work", "Nothing was stored. The terminal or console in which the login began says why. You can close this window."}
	pageStray  = page{"Nothing to do here", "No login waits for this. Logins that do are not affected."}
	pageLater  = page{"Not finished yet", "The login could not be finished right now. Reload this page to try again."}
)

var pageTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>{{.Title}}</title>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
</html>
`))

// writePage answers with a page that loads nothing, leads nowhere, is not kept and
// cannot be framed.
func writePage(w http.ResponseWriter, status int, p page) page {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, p) // the browser has gone if this fails
	return p
}
