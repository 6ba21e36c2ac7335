package console

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/usher-mcp/usher/host"
)

// screen is a whole page: what stands on all of them, and the page itself.
type screen struct {
	Title string
	Nav   string // which entry of the navigation it belongs to
	CSRF  string
	Here  string // its own address
	Note  *note

	Servers []serverView
	Chosen  string // the account whose page it is
	Login   int    // servers that need one
	Waiting int    // pins that wait for approval
	Agents  string // the address for agents

	// Page is what the template named by Body shows.
	Page any
	body string
	now  time.Time
	code int
}

// Busy reports whether anything is in flight.
func (s *screen) Busy() int {
	n := 0
	for _, v := range s.Servers {
		n += v.InFlight
	}
	return n
}

// Kind is which page it is.
func (s *screen) Kind() string { return s.body }

// The regions of a page are rendered apart: the stream sends them one by one.

// Top is the head of the page.
func (s *screen) Top() template.HTML { return s.part("top") }

// Side is the list of servers.
func (s *screen) Side() template.HTML { return s.part("side") }

// Body is the page itself.
func (s *screen) Body() template.HTML { return s.part(s.body) }

func (s *screen) part(name string) template.HTML {
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, name, s); err != nil {
		return template.HTML(template.HTMLEscapeString("this part cannot be shown: " + err.Error()))
	}
	return template.HTML(b.String())
}

func (s *screen) regions() []region {
	return []region{{"top", string(s.Top())}, {"side", string(s.Side())}, {"page", string(s.Body())}}
}

// screen looks at everything that the page at an address shows.
func (c *Console) screen(ctx context.Context, r *http.Request, s *session, at *url.URL, n *note) *screen {
	v := &screen{CSRF: s.csrf, Here: at.RequestURI(), Note: n, now: time.Now(), code: http.StatusOK, Agents: scheme(r) + r.Host + "/mcp"}
	for _, srv := range c.servers(ctx) {
		sv := viewServer(srv, v.now)
		v.Servers = append(v.Servers, sv)
		if srv.State == host.NeedsAuth {
			v.Login++
		}
	}
	pins, pinsErr := c.pins(ctx)
	v.Waiting = len(pins)
	q := at.Query()
	switch at.Path {
	case "/":
		c.overview(ctx, v)
	case pathServer:
		c.serverPage(ctx, v, q)
	case pathTools:
		c.toolsPage(ctx, v, q)
	case pathTool:
		c.toolPage(ctx, v, q)
	case pathCalls:
		c.callsPage(v, q)
	case pathPins:
		c.pinsPage(v, pins, pinsErr)
	case pathAccounts:
		c.accountsPage(ctx, v)
	case pathConnect:
		c.connectPage(v)
	default:
		v.missing("There is no such page.")
	}
	if n != nil && n.screen != nil {
		n.screen(v)
	}
	return v
}

// missing makes it a page that says what is not there.
func (s *screen) missing(words string) {
	s.Title, s.body, s.Page, s.code = "Not found", "missing", words, http.StatusNotFound
}

func (c *Console) showScreen(w http.ResponseWriter, r *http.Request, s *session, at *url.URL, n *note) {
	v := c.screen(r.Context(), r, s, at, n)
	if n != nil && n.Bad {
		v.code = http.StatusUnprocessableEntity
	}
	show(w, v.code, "layout.html", v)
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https://"
	}
	return "http://"
}
