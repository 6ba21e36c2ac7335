package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options steer a Console. The zero value serves this machine only.
type Options struct {
	// Base is how browsers reach it, scheme and host, for the links. Default: links
	// are only paths.
	Base string
	// Ours decides whether a request is addressed to this console, against DNS
	// rebinding, and replaces the default: only requests from this machine, to a
	// loopback name.
	Ours func(*http.Request) bool
	// KeepAlive is how often a stream without news says that it is alive. Default
	// 15 s.
	KeepAlive time.Duration
	// Tick is how often what changes with time is looked at again. Default 1 s.
	Tick time.Duration
}

// Console is the web console: an http.Handler for / and everything below /console/.
// It shows nothing without a link of [Console.Link].
type Console struct {
	world   World
	opt     Options
	mux     *http.ServeMux
	door    door
	streams atomic.Int32
	runs    runs
	seen    lookout

	life context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup
}

// New returns a console over a world, which stays the caller's. Close it first.
func New(w World, options *Options) *Console {
	c := &Console{world: w}
	if options != nil {
		c.opt = *options
	}
	if c.opt.KeepAlive <= 0 {
		c.opt.KeepAlive = 15 * time.Second
	}
	if c.opt.Tick <= 0 {
		c.opt.Tick = time.Second
	}
	c.door = door{cookie: "usher_console", path: "/", secure: strings.HasPrefix(c.opt.Base, "https://")}
	c.life, c.stop = context.WithCancel(context.Background())
	c.mux = http.NewServeMux()
	c.mux.HandleFunc("GET /{$}", c.servePage)
	c.mux.HandleFunc("GET /console/", c.servePage) // also those that are not there
	c.mux.HandleFunc("GET /console/events", c.serveEvents)
	c.mux.HandleFunc("GET /console/login/events", c.serveLoginEvents)
	c.mux.HandleFunc("POST /console/login/answers", c.serveLoginAnswers)
	c.mux.HandleFunc("GET /console/console.css", asset("text/css; charset=utf-8", "console.css"))
	c.mux.HandleFunc("GET /console/console.js", asset("text/javascript; charset=utf-8", "console.js"))
	c.mux.HandleFunc("GET /console/icon.svg", asset("image/svg+xml", "icon.svg"))
	for name, do := range map[string]action{
		"call": c.startCall, "cancel": c.cancelCall, "list": c.listTools, "accept": c.acceptPin,
		"login": c.beginLogin, "logout": c.endLogin, "reload": c.reload, "stop": c.stopServer,
	} {
		c.mux.Handle("POST /console/"+name, c.form(do))
	}
	return c
}

// The pages. Names of servers and tools stand in the query: they may hold anything.
const (
	pathServer   = "/console/server"
	pathTools    = "/console/tools"
	pathTool     = "/console/tool"
	pathCalls    = "/console/calls"
	pathPins     = "/console/pins"
	pathAccounts = "/console/accounts"
	pathConnect  = "/console/connect"
)

// Link returns a link to the console that works once, for ten minutes.
func (c *Console) Link() string { return c.opt.Base + "/?once=" + c.door.mint() }

// Connect begins a login wherever there is none, as the button does, and says how
// they stand.
func (c *Console) Connect() (Driver, error) {
	if err := c.world.Login(""); err != nil {
		return nil, err
	}
	return c.world.Logins(), nil
}

// ConnectLink is [Console.Link] to the board of logins.
func (c *Console) ConnectLink() string { return c.Link() + "&connect=1" }

// Close ends all streams and all calls that were tried from a page, and waits for
// them.
func (c *Console) Close() {
	c.stop()
	c.work.Wait()
}

// Drain ends all streams; pages and forms are still served.
func (c *Console) Drain() { c.stop() }

// Owns reports whether a path belongs to the console.
func Owns(path string) bool { return path == "/" || strings.HasPrefix(path, "/console/") }

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header(), consolePolicy)
	w.Header().Set("Referrer-Policy", "same-origin") // without it, forms would not say where they come from
	status, words := c.strange(r)
	if status == 0 {
		status, words = foreign(r)
	}
	if status != 0 {
		refuse(w, consoleStyle, status, words)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// strange says what is wrong with where a request comes from, or is meant for.
func (c *Console) strange(r *http.Request) (status int, words string) {
	switch {
	case c.opt.Ours == nil:
		return local(r)
	case !c.opt.Ours(r):
		return http.StatusMisdirectedRequest, "This page is not here."
	}
	return 0, ""
}

// How a browser gets in again.
const howToEnter = "The console opens with a link that works once. usher prints one when it starts; this prints another: usher console"

// servePage lets a browser in, or shows a page to one that is.
func (c *Console) servePage(w http.ResponseWriter, r *http.Request) {
	if once := r.URL.Query().Get("once"); once != "" && r.URL.Path == "/" {
		c.enter(w, r, once)
		return
	}
	s := c.door.session(r)
	if s == nil {
		refuse(w, consoleStyle, http.StatusForbidden, howToEnter)
		return
	}
	c.showScreen(w, r, s, r.URL, nil)
}

// enter trades a link for a cookie and leads on to the page, without the link in the
// address bar and the history.
func (c *Console) enter(w http.ResponseWriter, r *http.Request, once string) {
	if secret, ok := c.door.enter(once); ok {
		c.door.let(w, r, secret)
	} else if !c.door.knows(r) {
		refuse(w, consoleStyle, http.StatusForbidden, "This link was used already, is older than ten minutes, or is not one of this usher. A new one: usher console")
		return
	}
	to := "/"
	if r.URL.Query().Has("connect") {
		to = pathConnect
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		// Sent on from another site, the browser would not show its new cookie: the
		// next step has to be one of our own.
		show(w, http.StatusOK, "enter.html", to)
		return
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// maxForm bounds what a form may send.
const maxForm = 4 << 20

// action is what a form does. It returns the page to go to, or a note for the page
// that the form stands on.
type action func(r *http.Request, form url.Values) (to string, n *note)

// note is what became of a form, shown on the page.
type note struct {
	Text, Next string
	Bad        bool
	// screen shows more than words: the form again, with what is wrong in it.
	screen func(*screen)
}

// form guards an action: only a page of this console, made for this very browser,
// may cause it.
func (c *Console) form(do action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := c.door.session(r)
		if s == nil {
			refuse(w, consoleStyle, http.StatusForbidden, howToEnter)
			return
		}
		// Every browser of today names the origin of a form.
		if len(r.Header.Values("Origin")) != 1 {
			refuse(w, consoleStyle, http.StatusForbidden, "This form must come from the console itself.")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			refuse(w, consoleStyle, http.StatusBadRequest, "This form could not be read, or is too large.")
			return
		}
		if !s.own(r.PostForm.Get("csrf")) {
			refuse(w, consoleStyle, http.StatusForbidden, "This form is out of date. Go back, reload the page and try again.")
			return
		}
		to, n := do(r, r.PostForm)
		if n == nil {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusSeeOther)
			return
		}
		c.showScreen(w, r, s, inside(to), n)
	})
}

// inside reads an address of one of our pages; anything else is the first page.
func inside(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil || u.Host != "" || u.Scheme != "" || !Owns(u.Path) {
		return &url.URL{Path: "/"}
	}
	return u
}

// address is that of a page with parameters, given as names and values.
func address(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}
