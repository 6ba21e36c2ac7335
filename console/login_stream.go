package console

import (
	"net/http"
)

// LoginDriver is a [Driver] whose logins programs follow and answer over HTTP, in the
// lines of `usher login --json`; *bulk.Driver is one.
type LoginDriver interface {
	Driver
	// ServeEvents writes where every login stands and then what happens, one line each.
	ServeEvents(w http.ResponseWriter, r *http.Request)
	// ServeInput reads answers, one a line, and writes a reply for each.
	ServeInput(w http.ResponseWriter, r *http.Request)
}

// headerCSRF carries the token of a session where there is no form: in the response of
// serveLoginEvents, and in requests to serveLoginAnswers.
const headerCSRF = "X-CSRF-Token"

// serveLoginEvents streams the logins that were started from this console.
func (c *Console) serveLoginEvents(w http.ResponseWriter, r *http.Request) {
	ctx, s, done := openStream(c, w, r)
	if s == nil {
		return
	}
	defer done()
	w.Header().Set(headerCSRF, s.csrf)
	d := c.world.Logins()
	if d == nil {
		refuse(w, consoleStyle, http.StatusNotFound, noLogins)
		return
	}
	d.ServeEvents(w, r.WithContext(ctx))
}

// serveLoginAnswers takes answers to logins. It has the checks of a form; the token of
// the session is in a header because the body is not a form.
func (c *Console) serveLoginAnswers(w http.ResponseWriter, r *http.Request) {
	s := c.door.session(r)
	switch {
	case s == nil:
		refuse(w, consoleStyle, http.StatusForbidden, howToEnter)
		return
	case len(r.Header.Values("Origin")) != 1: // ServeHTTP has refused foreign ones
		refuse(w, consoleStyle, http.StatusForbidden, "Answers must name the console as their Origin.")
		return
	case !s.own(r.Header.Get(headerCSRF)):
		refuse(w, consoleStyle, http.StatusForbidden, "The header "+headerCSRF+" is missing or out of date. GET /console/login/events returns it.")
		return
	}
	d := c.world.Logins()
	if d == nil {
		refuse(w, consoleStyle, http.StatusNotFound, noLogins)
		return
	}
	d.ServeInput(w, r)
	c.forget()
}

const noLogins = "No login was started from this console yet."
