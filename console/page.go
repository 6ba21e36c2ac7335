package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/netip"
	"net/url"
	"sync"

	"github.com/usher-mcp/usher/auth/bulk"
)

//go:embed assets
var assets embed.FS

var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		// pair hands a server to a template that needs the forms' token too.
		"pair": func(s *screen, server any) map[string]any { return map[string]any{"CSRF": s.CSRF, "Server": server} },
	}).ParseFS(assets, "assets/*.html"))
})

// view is the whole page, as the template shows it and the stream sends it.
type view struct {
	Summary string      `json:"summary"`
	Good    int         `json:"good"` // connected
	All     int         `json:"all"`  // of those that should be
	Done    bool        `json:"done"`
	Groups  []groupView `json:"groups"`
}

// Next is the first login that waits, for browsers without scripts.
func (v view) Next() string {
	for _, g := range v.Groups {
		for _, r := range g.Rows {
			if r.Link != "" {
				return r.Link
			}
		}
	}
	return ""
}

type groupView struct {
	ID    string    `json:"id"`
	Title string    `json:"title"`
	Rows  []rowView `json:"rows"`
}

type rowView struct {
	ID     string     `json:"id"`
	Server string     `json:"server"`
	URL    string     `json:"url"`
	Phase  bulk.Phase `json:"phase"`
	Word   string     `json:"word"`
	Detail string     `json:"detail,omitempty"`
	// Link is the page to consent on; "" when there is nothing to do.
	Link string `json:"link,omitempty"`
	// Code is to be typed in there.
	Code string `json:"code,omitempty"`
}

// words says each phase to a person.
func words(p bulk.Phase) string {
	switch p {
	case bulk.PhaseQueued:
		return "waits for its turn"
	case bulk.PhaseDiscovering:
		return "looking for its login page"
	case bulk.PhaseAwaiting:
		return "waiting for your consent"
	case bulk.PhaseExchanging:
		return "finishing"
	}
	return string(p) // connected, failed, skipped
}

func look(rows []bulk.Row) view {
	v := view{Done: finished(rows), Groups: []groupView{}}
	count := map[bulk.Phase]int{}
	for _, r := range rows {
		count[r.Phase]++
	}
	wanted := len(rows) - count[bulk.PhaseSkipped]
	v.Good, v.All = count[bulk.PhaseConnected], wanted
	v.Summary = fmt.Sprintf("%d of %d connected", v.Good, v.All)
	if n := count[bulk.PhaseAwaiting]; n > 0 {
		v.Summary += fmt.Sprintf(", %d waiting for you", n)
	}
	if n := count[bulk.PhaseFailed]; n > 0 {
		v.Summary += fmt.Sprintf(", %d failed", n)
	}
	if n := count[bulk.PhaseSkipped]; n > 0 {
		v.Summary += fmt.Sprintf(", %d skipped", n)
	}
	for _, g := range bulk.ByIssuer(rows, func(r bulk.Row) string { return r.Issuer }) {
		gv := groupView{ID: id("g", g.Issuer), Title: title(g.Issuer)}
		for _, r := range g.Items {
			gv.Rows = append(gv.Rows, lookAt(r))
		}
		v.Groups = append(v.Groups, gv)
	}
	return v
}

func lookAt(r bulk.Row) rowView {
	v := rowView{ID: id("r", r.Account.Principal+"/"+r.Server), Server: r.Server, URL: r.ServerURL, Phase: r.Phase, Word: words(r.Phase), Detail: r.Detail}
	if r.Login == nil || r.Phase != bulk.PhaseAwaiting {
		return v
	}
	v.Link = safe(r.Login.AuthorizeURL)
	if d := r.Login.Device; d != nil {
		v.Link, v.Code = safe(d.VerificationURI), d.UserCode
	}
	return v
}

// id names an element of the page.
func id(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + hex.EncodeToString(sum[:6])
}

func title(issuer string) string {
	if issuer == "" {
		return "Not begun"
	}
	if u, err := url.Parse(issuer); err == nil && u.Host != "" {
		return u.Host
	}
	return issuer
}

// safe lets only addresses through that a browser may be sent to.
func safe(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return ""
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
	if u.Scheme == "https" || u.Scheme == "http" && local {
		return u.String()
	}
	return ""
}

// servePage lets a browser in, or shows the page to one that is.
func (c *Consent) servePage(w http.ResponseWriter, r *http.Request) {
	if once := r.URL.Query().Get("once"); once != "" {
		if session, ok := c.door.enter(once); ok {
			c.door.let(w, r, session)
		} else if !c.door.knows(r) {
			refuse(w, consentStyle, http.StatusForbidden, "This link was used already, or is not one of usher's. Run the command again for a new one.")
			return
		}
		// The link leaves the address bar and the history.
		w.Header().Set("Location", "/connect")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	if !c.door.knows(r) {
		refuse(w, consentStyle, http.StatusForbidden, "This page opens with the link that usher prints.")
		return
	}
	show(w, http.StatusOK, "consent.html", look(c.driver.Rows()))
}

// The styles of the two kinds of pages.
const (
	consentStyle = "/connect/consent.css"
	consoleStyle = "/console/console.css"
)

// refuse shows fixed words: nothing of a request ever appears.
func refuse(w http.ResponseWriter, style string, status int, words string) {
	show(w, status, "refusal.html", struct{ Style, Words string }{style, words})
}

func show(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser has gone if this fails
}

func asset(contentType, name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(data) // the browser has gone if this fails
	}
}

// What pages may load and do. Those of the console also have forms, and show pictures
// that tools answered with.
const (
	consentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)

// setHeaders makes a browser load nothing from elsewhere, keep nothing, tell nobody
// where it has been, and show the page in no frame.
func setHeaders(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
