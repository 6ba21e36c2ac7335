package loopback

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"sync"
)

// Outcome is how a login ended, as far as a browser may see it.
type Outcome int

// The outcomes.
const (
	// LoggedIn: the login is stored.
	LoggedIn Outcome = iota
	// Failed: the login ended without a grant.
	Failed
	// Unknown: no login waits for this callback.
	Unknown
	// Retry: the login could not be finished right now; the same callback may come again.
	Retry
)

// page is what a person gets to see. All of it is fixed: nothing from a request or
// from a provider ever appears.
type page struct{ Title, Text, Sign string }

// page returns the page of an outcome.
func (o Outcome) page() page {
	switch o {
	case LoggedIn:
		return page{"You are logged in", "usher has stored the login. You can close this window.", "✔"}
	case Failed:
		return page{"The login did not work", "Nothing was stored. The terminal or console in which the login began says why. You can close this window.", "✖"}
	case Retry:
		return page{"Not finished yet", "The login could not be finished right now. Reload this page to try again.", "…"}
	}
	return page{"Nothing to do here", "No login waits for this: it is finished already, or was never begun. Logins that wait are not affected. You can close this window.", "–"}
}

// Title is the heading of the page of an outcome.
func (o Outcome) Title() string { return o.page().Title }

// status is the HTTP status of an outcome.
func (o Outcome) status() int {
	switch o {
	case LoggedIn, Failed:
		return http.StatusOK
	case Retry:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// WriteOutcome shows how a login ended.
func WriteOutcome(w http.ResponseWriter, o Outcome) { writePage(w, o.status(), o) }

// pageStyle is all the style there is; the policy allows it by its hash.
const pageStyle = `:root { color-scheme: light dark; --ink: #1c2024; --soft: #5c6068; --paper: #f7f7f9; --card: #fff; --line: #dcdce3; --good: #176c46; --bad: #b42318 }
@media (prefers-color-scheme: dark) { :root { --ink: #edeef0; --soft: #a9adb5; --paper: #101113; --card: #17181b; --line: #303339; --good: #4bd08f; --bad: #ff9592 } }
body { display: grid; place-items: center; min-height: 90vh; margin: 0; padding: 1rem; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 26rem; padding: 2rem; border: 1px solid var(--line); border-radius: .75rem; background: var(--card); text-align: center }
span { font-size: 2.5rem; line-height: 1; color: var(--soft) }
[data-sign="✔"] { color: var(--good) } [data-sign="✖"] { color: var(--bad) }
h1 { margin: .75rem 0 .25rem; font-size: 1.25rem } p { margin: 0; color: var(--soft) }`

// pagePolicy lets the page do nothing but look as it does.
var pagePolicy = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
})

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{{.Title}} – usher</title>
<style>` + pageStyle + `</style>
<main>
<span data-sign="{{.Sign}}" aria-hidden="true">{{.Sign}}</span>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
</main>
</html>
`))
})

// writePage answers with a page that loads nothing, leads nowhere, is not kept and
// cannot be framed.
func writePage(w http.ResponseWriter, status int, o Outcome) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = pageTemplate().Execute(w, o.page()) // the browser has gone if this fails
}
