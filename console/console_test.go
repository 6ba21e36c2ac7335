package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Nobody gets in without a link, and a link works once.
func TestConsoleDoor(t *testing.T) {
	c := newConsole(t, hostile(), &Options{Base: "http://127.0.0.1:7331"})
	link := c.Link()
	if !strings.HasPrefix(link, "http://127.0.0.1:7331/?once=") {
		t.Fatalf("link %q", link)
	}
	for _, path := range []string{"/", "/?once=GUESS", "/console/tools", "/console/events?at=/", "/console/pins"} {
		r := ask(c, path, nil)
		if text := body(t, r); r.StatusCode != http.StatusForbidden || len(r.Cookies()) != 0 || strings.Contains(text, "needy") || !strings.Contains(text, "usher console") {
			t.Errorf("%s: HTTP %d, %s", path, r.StatusCode, text)
		}
	}
	path := strings.TrimPrefix(link, "http://127.0.0.1:7331")
	first := ask(c, path, nil)
	if first.StatusCode != http.StatusSeeOther || first.Header.Get("Location") != "/" || len(first.Cookies()) != 1 {
		t.Fatalf("HTTP %d, %v", first.StatusCode, first.Header)
	}
	got := first.Cookies()[0]
	if !got.HttpOnly || got.SameSite != http.SameSiteStrictMode || got.Name != "usher_console_7331" || got.Secure {
		t.Errorf("cookie %+v", got)
	}
	if r := ask(c, path, nil); r.StatusCode != http.StatusForbidden {
		t.Errorf("the second time: HTTP %d", r.StatusCode)
	}
	if r := ask(c, "/", func(r *http.Request) { r.AddCookie(got) }); r.StatusCode != http.StatusOK {
		t.Errorf("with the cookie: HTTP %d", r.StatusCode)
	}
	// A link that another site leads to: the cookie is shown only on a step of our own.
	c2 := ask(c, strings.TrimPrefix(c.Link(), c.opt.Base), func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
	})
	if text := body(t, c2); c2.StatusCode != http.StatusOK || len(c2.Cookies()) != 1 || !strings.Contains(text, `content="0; url=/"`) || strings.Contains(text, "needy") {
		t.Errorf("from another site: HTTP %d %s", c2.StatusCode, text)
	}
	if secure := newConsole(t, &scene{}, &Options{Base: "https://usher.example"}); !visit(t, secure).cookie.Secure {
		t.Error("behind TLS the cookie may travel without")
	}
}

func TestLinksAndSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(&scene{}, nil)
		defer c.Close()
		link := c.Link()
		time.Sleep(linkLife + time.Second)
		if r := ask(c, link, nil); r.StatusCode != http.StatusForbidden {
			t.Errorf("an old link: HTTP %d", r.StatusCode)
		}
		v := visit(t, c)
		time.Sleep(sessionIdle - time.Hour)
		if status, _ := v.get("/"); status != http.StatusOK {
			t.Errorf("within the time: HTTP %d", status)
		}
		time.Sleep(sessionIdle - time.Hour)
		if status, _ := v.get("/"); status != http.StatusOK {
			t.Errorf("used meanwhile: HTTP %d", status)
		}
		time.Sleep(sessionIdle + time.Second)
		if status, _ := v.get("/"); status != http.StatusForbidden {
			t.Errorf("after it: HTTP %d", status)
		}
	})
}

// Nothing is done for a form that does not come from a page of this very browser.
func TestFormsAreGuarded(t *testing.T) {
	s := hostile()
	c := newConsole(t, s, nil)
	v, other := visit(t, c), visit(t, c)
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Del(pairs[i])
				if pairs[i+1] != "" {
					r.Header.Set(pairs[i], pairs[i+1])
				}
			}
		}
	}
	for name, tt := range map[string]struct {
		token string
		edit  func(*http.Request)
		want  int
	}{
		"as it should be":      {v.token(), nil, 303},
		"no token":             {"", nil, 403},
		"another token":        {"ABCDEFGHIJKLMNOPQRSTUVWXYZ", nil, 403},
		"of another browser":   {other.token(), nil, 403},
		"no cookie":            {v.token(), header("Cookie", ""), 403},
		"no origin":            {v.token(), header("Origin", ""), 403},
		"another origin":       {v.token(), header("Origin", "https://evil.example"), 403},
		"another port":         {v.token(), header("Origin", "http://127.0.0.1:1"), 403},
		"a page without one":   {v.token(), header("Origin", "null"), 403},
		"a foreign page":       {v.token(), header("Sec-Fetch-Site", "cross-site"), 403},
		"a foreign navigation": {v.token(), header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403},
		"a rebound name": {v.token(), func(r *http.Request) {
			r.Host = "evil.example:7331"
			r.Header.Set("Origin", "http://evil.example:7331")
		}, 421},
		"from the network": {v.token(), func(r *http.Request) { r.RemoteAddr = "192.168.1.2:1" }, 403},
		"looked at":        {v.token(), func(r *http.Request) { r.Method = http.MethodGet }, 404},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(s.done())
			r := v.post("/console/reload", url.Values{"csrf": {tt.token}, "server": {"needy"}, "name": {"needy"}}, tt.edit)
			discardBody(r)
			if r.StatusCode != tt.want {
				t.Errorf("HTTP %d, want %d", r.StatusCode, tt.want)
			}
			if did := len(s.done()) > before; did != (tt.want == 303) {
				t.Errorf("done: %v", s.done()[before:])
			}
		})
	}
	big := v.post("/console/call", url.Values{"json": {strings.Repeat("x", maxForm)}}, nil)
	if discardBody(big); big.StatusCode != http.StatusBadRequest {
		t.Errorf("too large: HTTP %d", big.StatusCode)
	}
}

// What may be addressed is the gateway's to say, where there is one.
func TestOurs(t *testing.T) {
	c := newConsole(t, &scene{}, &Options{Ours: func(r *http.Request) bool { return r.Host == "usher.example" }})
	link := c.Link()
	from := func(host string) func(*http.Request) {
		return func(r *http.Request) { r.Host, r.RemoteAddr = host, "10.1.2.3:4" }
	}
	if r := ask(c, link, from("127.0.0.1:7331")); r.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("HTTP %d", r.StatusCode)
	}
	if r := ask(c, link, from("usher.example")); r.StatusCode != http.StatusSeeOther || r.Cookies()[0].Name != "usher_console" {
		t.Errorf("HTTP %d, %v", r.StatusCode, r.Cookies())
	}
}

// Every page shows foreign text as text, loads nothing from elsewhere and has no
// script or style of its own.
func TestPagesAreHarmless(t *testing.T) {
	s := hostile()
	c := newConsole(t, s, nil)
	v := visit(t, c)
	name := s.servers[0].AccountName()
	s.set(func(s *scene) { s.driver = &stage{} })
	for path, want := range map[string]string{
		"/": "Needs attention", address(pathServer, "name", name): "Events", pathTools: "1 tools are known", pathTools + "?q=script": "tools fit",
		address(pathTool, "server", name, "name", name): "Schema of the arguments", pathCalls: "newest first", pathCalls + "?show=failed": "Failed",
		pathPins: "Accept", pathAccounts: "Log out", pathConnect: "No login was begun",
		"/console/server?name=nobody": "no server of that name", "/console/tool?server=a&name=b": "There is no such tool",
	} {
		_, page := v.get(path)
		if !strings.Contains(page, want) {
			t.Errorf("%s does not say %q", path, want)
		}
		for _, bad := range []string{"<script>", "<img", "onerror=alert(1)>", " style=", "javascript:", "\u202e", "\x1b", "ZgotmplZ", "cannot be shown", "<b>", "<i>"} {
			if strings.Contains(page, bad) && !(bad == "onerror=alert(1)>" && !strings.Contains(page, "<img")) {
				t.Errorf("%s holds %q", path, bad)
			}
		}
		if n := strings.Count(page, "<script"); n != 1 {
			t.Errorf("%s has %d scripts", path, n)
		}
	}
	r := ask(c, "/", func(r *http.Request) { r.AddCookie(v.cookie) })
	want := "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
	if diff := cmp.Diff(want, r.Header.Get("Content-Security-Policy")); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	for _, path := range []string{"/console/console.js", "/console/console.css", "/console/icon.svg"} {
		if a := ask(c, path, nil); a.StatusCode != http.StatusOK || strings.Contains(body(t, a), "innerHTML") {
			t.Errorf("%s: HTTP %d", path, a.StatusCode)
		}
	}
}

// What forms do reaches the world, with the right words.
func TestActions(t *testing.T) {
	for _, tt := range []struct {
		path, form, did, to string
	}{
		{"/console/login", "", "login ", pathConnect},
		{"/console/login", "account=linear@work", "login linear@work", pathConnect},
		{"/console/list", "server=a", "list a", "/console/server?name=a"},
		{"/console/reload", "server=a@b&name=a", "reload a|list a@b", "/console/server?name=a%40b"},
		{"/console/stop", "server=a&name=a", "stop a", "/console/server?name=a"},
		{"/console/accept", "server=a&tool=t&hash=h", "accept a t h", ""},
		{"/console/accept", "server=a&tool=t", "", ""},
		{"/console/logout", "account=a", "logout a", ""},
	} {
		t.Run(tt.path+" "+tt.form, func(t *testing.T) {
			s := hostile()
			v := visit(t, newConsole(t, s, nil))
			form, err := url.ParseQuery(tt.form)
			if err != nil {
				t.Fatal(err)
			}
			r := v.post(tt.path, form, nil)
			discardBody(r)
			if got := strings.Join(s.done(), "|"); got != tt.did || r.Header.Get("Location") != tt.to {
				t.Errorf("did %q, went to %q (HTTP %d)", got, r.Header.Get("Location"), r.StatusCode)
			}
		})
	}
	s := hostile()
	s.fails = errScene
	v := visit(t, newConsole(t, s, nil))
	for _, path := range []string{"/console/login", "/console/list", "/console/accept", "/console/logout"} {
		r := v.post(path, url.Values{"server": {"needy"}, "hash": {"x"}}, nil)
		if page := body(t, r); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page, "it is &lt;b&gt;broken") {
			t.Errorf("%s: HTTP %d without the reason", path, r.StatusCode)
		}
	}
}

// The board of logins is that of the consent page.
func TestConnectBoard(t *testing.T) {
	board := &stage{}
	board.set("linear", "https://linear.app", "awaiting_consent", "")
	board.set("figma", "", "failed", "no")
	s := &scene{driver: board}
	v := visit(t, newConsole(t, s, nil))
	_, page := v.get(pathConnect)
	for _, want := range []string{"0 of 2 connected, 1 waiting for you, 1 failed", `data-phase="awaiting_consent" data-server="linear"`, "state=state-linear", "Open the next one"} {
		if !strings.Contains(page, want) {
			t.Errorf("the board does not hold %q", want)
		}
	}
}

var _ World = (*scene)(nil)
