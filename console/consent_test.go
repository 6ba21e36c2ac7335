package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
)

func TestLinkWorksOnce(t *testing.T) {
	s := &stage{}
	s.set("linear", "https://linear.app", bulk.PhaseAwaiting, "")
	c := newPage(t, s, nil)
	link := c.Link()
	if !regexp.MustCompile(`^/connect\?once=[A-Z2-7]{26,}$`).MatchString(link) {
		t.Fatalf("link %q", link)
	}
	for name, path := range map[string]string{
		"no link": "/connect", "a guess": "/connect?once=GUESS", "no link to the stream": "/connect/events", "nothing": "/connect?once=",
	} {
		if r := ask(c, path, nil); r.StatusCode != http.StatusForbidden || len(r.Cookies()) != 0 || strings.Contains(body(t, r), "linear") {
			t.Errorf("%s: HTTP %d, cookies %v", name, r.StatusCode, r.Cookies())
		}
	}
	prefetch := ask(c, link, func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch") })
	if prefetch.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a prefetch got HTTP %d", prefetch.StatusCode)
	}
	first := ask(c, link, nil)
	if first.StatusCode != http.StatusSeeOther || first.Header.Get("Location") != "/connect" || len(first.Cookies()) != 1 {
		t.Fatalf("HTTP %d, %v", first.StatusCode, first.Header)
	}
	got := first.Cookies()[0]
	if !got.HttpOnly || got.SameSite != http.SameSiteStrictMode || got.Path != "/connect" || len(got.Value) < 26 || strings.Contains(link, got.Value) {
		t.Errorf("cookie %+v", got)
	}
	if r := ask(c, link, nil); r.StatusCode != http.StatusForbidden || len(r.Cookies()) != 0 {
		t.Errorf("the second time: HTTP %d, cookies %v", r.StatusCode, r.Cookies())
	}
	with := func(r *http.Request) { r.AddCookie(got) }
	if r := ask(c, link, with); r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 0 {
		t.Errorf("the second time, let in before: HTTP %d", r.StatusCode)
	}
	if r := ask(c, "/connect", with); r.StatusCode != http.StatusOK || !strings.Contains(body(t, r), "linear") {
		t.Errorf("with the cookie: HTTP %d", r.StatusCode)
	}
	forged := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: got.Name, Value: "forged"}) }
	if r := ask(c, "/connect", forged); r.StatusCode != http.StatusForbidden {
		t.Errorf("with a forged cookie: HTTP %d", r.StatusCode)
	}
}

// Links that nobody uses do not pile up: the oldest is no good any more.
func TestLinksAreBounded(t *testing.T) {
	c := newPage(t, &stage{}, nil)
	links := make([]string, maxLinks+1)
	for i := range links {
		links[i] = c.Link()
	}
	if r := ask(c, links[0], nil); r.StatusCode != http.StatusForbidden {
		t.Errorf("the oldest: HTTP %d", r.StatusCode)
	}
	if r := ask(c, links[1], nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("the next: HTTP %d", r.StatusCode)
	}
}

func TestStrangersAreTurnedAway(t *testing.T) {
	s := &stage{}
	s.set("linear", "https://linear.app", bulk.PhaseAwaiting, "")
	c := newPage(t, s, nil)
	in := letIn(t, c)
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Add(pairs[i], pairs[i+1])
			}
		}
	}
	for name, tt := range map[string]struct {
		edit func(*http.Request)
		want int
	}{
		"as it should be":           {nil, 200},
		"localhost":                 {func(r *http.Request) { r.Host = "localhost:9000" }, 200},
		"the other loopback":        {func(r *http.Request) { r.Host, r.RemoteAddr = "[::1]:7331", "[::1]:5" }, 200},
		"no port":                   {func(r *http.Request) { r.Host = "127.0.0.1" }, 200},
		"rebound name":              {func(r *http.Request) { r.Host = "evil.example:7331" }, 421},
		"name like an address":      {func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 421},
		"localhost of somebody":     {func(r *http.Request) { r.Host = "localhost.evil.example" }, 421},
		"address of the network":    {func(r *http.Request) { r.Host = "192.168.1.2:7331" }, 421},
		"no host":                   {func(r *http.Request) { r.Host = "" }, 421},
		"from the network":          {func(r *http.Request) { r.RemoteAddr = "192.168.1.9:1234" }, 403},
		"from nowhere":              {func(r *http.Request) { r.RemoteAddr = "" }, 403},
		"its own origin":            {header("Origin", "http://127.0.0.1:7331"), 200},
		"another origin":            {header("Origin", "https://evil.example"), 403},
		"another port":              {header("Origin", "http://127.0.0.1:9999"), 403},
		"no origin at all":          {header("Origin", "null"), 403},
		"two origins":               {header("Origin", "http://127.0.0.1:7331", "Origin", "https://evil.example"), 403},
		"a fetch of another site":   {header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), 403},
		"a fetch of a neighbour":    {header("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"), 403},
		"a frame of another site":   {header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"), 403},
		"a link on another site":    {header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 200},
		"typed into the address":    {header("Sec-Fetch-Site", "none"), 200},
		"a fetch of the page":       {header("Sec-Fetch-Site", "same-origin"), 200},
		"a form":                    {func(r *http.Request) { r.Method = http.MethodPost }, 405},
		"only the head":             {func(r *http.Request) { r.Method = http.MethodHead }, 405},
		"asked before anyone looks": {header("X-Moz", "prefetch"), 503},
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(c, "/connect", func(r *http.Request) {
				r.AddCookie(in)
				if tt.edit != nil {
					tt.edit(r)
				}
			})
			if r.StatusCode != tt.want {
				t.Errorf("HTTP %d, want %d", r.StatusCode, tt.want)
			}
			checkHeaders(t, r.Header)
			if text := body(t, r); (tt.want == 200) != strings.Contains(text, "linear") {
				t.Errorf("body %q", text)
			}
		})
	}
}

func checkHeaders(t *testing.T, h http.Header) {
	t.Helper()
	policy := map[string]string{}
	for part := range strings.SplitSeq(h.Get("Content-Security-Policy"), ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), " ")
		policy[name] = value
	}
	want := map[string]string{
		"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'",
		"frame-ancestors": "'none'", "base-uri": "'none'", "form-action": "'none'",
	}
	if diff := cmp.Diff(want, policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
	} {
		if got := h.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
}

func TestPage(t *testing.T) {
	s := &stage{}
	s.set("linear", "https://linear.app", bulk.PhaseAwaiting, "")
	s.set("figma", "", bulk.PhaseFailed, `<script>alert(1)</script> "the provider's words"`)
	s.set("sentry", "https://linear.app", bulk.PhaseConnected, "")
	s.set(`<img src=x>`, "https://<b>.example", bulk.PhaseSkipped, "already connected")
	c := newPage(t, s, nil)
	in := letIn(t, c)
	r := ask(c, "/connect", func(r *http.Request) { r.AddCookie(in) })
	text := body(t, r)
	for _, want := range []string{
		"1 of 3 connected, 1 waiting for you, 1 failed, 1 skipped", `href="https://as.example/authorize?client_id=x&amp;state=state-linear"`,
		`target="_blank" rel="noopener noreferrer"`, `data-phase="connected"`, "&lt;script&gt;alert(1)", `lang="en"`, `name="viewport"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	for _, bad := range []string{"<script>alert", "<img", "<b>", "onclick", "style=", "javascript:"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if n := strings.Count(text, "<script"); n != 1 || !strings.Contains(text, `<script src="/connect/consent.js" defer></script>`) {
		t.Errorf("%d scripts", n)
	}
	if strings.Index(text, "sentry") > strings.Index(text, "figma") {
		t.Error("servers of one authorization server are not together")
	}
}

func TestAssets(t *testing.T) {
	c := newPage(t, &stage{}, nil)
	for path, want := range map[string][2]string{
		"/connect/consent.css": {"text/css; charset=utf-8", "prefers-color-scheme: dark"},
		"/connect/consent.js":  {"text/javascript; charset=utf-8", "EventSource"},
	} {
		r := ask(c, path, nil)
		checkHeaders(t, r.Header)
		if text := body(t, r); r.Header.Get("Content-Type") != want[0] || !strings.Contains(text, want[1]) {
			t.Errorf("%s: %s", path, r.Header.Get("Content-Type"))
		} else if strings.Contains(text, "innerHTML") || strings.Contains(text, "window.open") || strings.Contains(text, "http://") || strings.Contains(text, "https://") {
			t.Errorf("%s makes markup of texts, opens windows or loads from elsewhere", path)
		}
	}
	if r := ask(c, "/connect/../assets/consent.html", nil); r.StatusCode == http.StatusOK {
		t.Error("a template was served")
	}
	if r := ask(c, "/", nil); r.StatusCode != http.StatusNotFound {
		t.Errorf("HTTP %d at /", r.StatusCode)
	}
}

// A link leads only where a browser may be sent, whatever a server named.
func TestLinksAreSafe(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://as.example/authorize?x=1": true, "http://127.0.0.1:9/authorize": true, "http://localhost:9/a": true, "http://[::1]:9/a": true,
		"http://as.example/authorize": false, "javascript:alert(1)": false, "data:text/html,x": false, "file:///etc/passwd": false,
		"https://me:pw@as.example/": false, "//as.example/": false, "": false, "https://%zz": false, "vscode://x/y": false,
	} {
		if got := safe(address); (got != "") != ok {
			t.Errorf("safe(%q) = %q", address, got)
		}
	}
	v := lookAt(bulk.Row{Event: bulk.Event{Phase: bulk.PhaseAwaiting}, Login: &auth.Pending{Device: &auth.Device{UserCode: "WDJB-MJHT", VerificationURI: "https://fly.io/device"}}})
	if v.Link != "https://fly.io/device" || v.Code != "WDJB-MJHT" {
		t.Errorf("device row %+v", v)
	}
	v = lookAt(bulk.Row{Event: bulk.Event{Phase: bulk.PhaseExchanging}, Login: &auth.Pending{AuthorizeURL: "https://as.example/a"}})
	if v.Link != "" {
		t.Errorf("a row that is being finished has a link: %+v", v)
	}
}

// The whole way of a browser: link, page, stream; rows turn green; the page closes.
func TestRowsTurnGreenAndThePageCloses(t *testing.T) {
	s := &stage{}
	s.set("a", "https://as.example", bulk.PhaseAwaiting, "")
	s.set("b", "", bulk.PhaseDiscovering, "")
	c := newPage(t, s, &ConsentOptions{Linger: 20 * time.Millisecond})
	link, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(link, "http://127.0.0.1:") {
		t.Fatalf("link %q", link)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	if text := body(t, resp); resp.StatusCode != http.StatusOK || resp.Request.URL.RawQuery != "" || !strings.Contains(text, "0 of 2 connected, 1 waiting for you") {
		t.Fatalf("HTTP %d at %s: %s", resp.StatusCode, resp.Request.URL, text)
	}
	base, _, _ := strings.Cut(link, "?")
	events := listen(t, client, base+"/events", jar.Cookies(resp.Request.URL)[0])
	hear(t, events, "a", bulk.PhaseAwaiting)
	s.set("a", "https://as.example", bulk.PhaseExchanging, "")
	s.set("a", "https://as.example", bulk.PhaseConnected, "")
	if v := hear(t, events, "a", bulk.PhaseConnected); v.Done || v.Summary != "1 of 2 connected" {
		t.Errorf("view %+v", v)
	}
	s.set("b", "https://as.example", bulk.PhaseAwaiting, "")
	if v := hear(t, events, "b", bulk.PhaseAwaiting); len(v.Groups) != 1 || len(v.Groups[0].Rows) != 2 {
		t.Errorf("groups %+v", v.Groups)
	}
	s.set("b", "https://as.example", bulk.PhaseFailed, "access_denied")
	if v := hear(t, events, "b", bulk.PhaseFailed); !v.Done {
		t.Error("not done")
	}
	if n, open := <-events; !open || n.name != "done" {
		t.Errorf("last news %+v", n)
	}
	<-c.Done()
	if _, err := client.Get(base); err == nil {
		t.Error("the page is still served")
	}
}

func TestStreamKeepsAliveAndSaysNothingTwice(t *testing.T) {
	s := &stage{}
	s.set("a", "https://as.example", bulk.PhaseAwaiting, "")
	c := newPage(t, s, &ConsentOptions{KeepAlive: time.Millisecond})
	if _, err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	events := listen(t, client, strings.SplitN(c.Link(), "?", 2)[0]+"/events", letIn(t, c))
	hear(t, events, "a", bulk.PhaseAwaiting)
	for range 3 {
		if n := <-events; n.name != "comment" {
			t.Errorf("without news it said %+v", n)
		}
	}
	_ = c.Close() // ends the stream
	for range events {
	}
	if r := ask(c, "/connect", nil); r.StatusCode != http.StatusGone {
		t.Errorf("after Close: HTTP %d", r.StatusCode)
	}
	if _, err := c.Start(t.Context()); err == nil {
		t.Error("a closed page was started")
	}
}

// Closing ends streams at once, and a browser that went away leaves nothing behind.
func TestStreamEndsWithThePage(t *testing.T) {
	for name, end := range map[string]func(c *Consent, leave context.CancelFunc){
		"closed": func(c *Consent, _ context.CancelFunc) { c.stop() },
		"left":   func(_ *Consent, leave context.CancelFunc) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{}
				s.set("a", "https://as.example", bulk.PhaseAwaiting, "")
				c := newPage(t, s, nil)
				in := letIn(t, c)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = ask(c, "/connect/events", func(r *http.Request) {
						r.AddCookie(in)
						*r = *r.WithContext(ctx)
					})
				}()
				synctest.Wait()
				end(c, leave)
				synctest.Wait()
				select {
				case <-ended:
				default:
					t.Error("the stream goes on")
					leave()
				}
				if n := s.bus.Subscribers(); n != 0 {
					t.Errorf("%d subscriptions left", n)
				}
			})
		})
	}
}

var _ Driver = (*bulk.Driver)(nil)

func TestStreamsAreBounded(t *testing.T) {
	s := &stage{}
	s.set("a", "https://as.example", bulk.PhaseAwaiting, "")
	c := newPage(t, s, nil)
	if _, err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	in, address := letIn(t, c), strings.SplitN(c.Link(), "?", 2)[0]+"/events"
	for range maxStreams {
		hear(t, listen(t, client, address, in), "a", bulk.PhaseAwaiting)
	}
	if r := ask(c, "/connect/events", func(r *http.Request) { r.AddCookie(in) }); r.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one too many: HTTP %d", r.StatusCode)
	}
}

// The page closes only after the last login, and not before a browser had the time to
// see it.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{}
		c := NewConsent(s, nil)
		c.work.Go(c.closeWhenDone)
		open := func() bool {
			synctest.Wait()
			select {
			case <-c.Done():
				return false
			default:
				return true
			}
		}
		time.Sleep(time.Hour) // nothing to do yet is not done
		s.set("a", "", bulk.PhaseQueued, "")
		s.set("b", "", bulk.PhaseSkipped, "")
		if !open() {
			t.Error("closed while one waits for its turn")
		}
		s.set("a", "", bulk.PhaseConnected, "")
		time.Sleep(2 * time.Second)
		if !open() {
			t.Error("closed at once")
		}
		time.Sleep(time.Second)
		if open() {
			t.Error("still open")
		}
		_ = c.Close()
	})
}

// A page that is closed when the last login has ended lets browsers see that first.
func TestCloseTellsTheEnd(t *testing.T) {
	s := &stage{}
	s.set("a", "https://as.example", bulk.PhaseAwaiting, "")
	c := newPage(t, s, nil)
	if _, err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	events := listen(t, client, strings.SplitN(c.Link(), "?", 2)[0]+"/events", letIn(t, c))
	hear(t, events, "a", bulk.PhaseAwaiting)
	s.set("a", "https://as.example", bulk.PhaseConnected, "")
	_ = c.Close()
	hear(t, events, "a", bulk.PhaseConnected)
	if n := <-events; n.name != "done" {
		t.Errorf("last news %+v", n)
	}
}

func TestPortInUse(t *testing.T) {
	first, second := newPage(t, &stage{}, nil), newPage(t, &stage{}, nil)
	link, err := first.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Start(t.Context()); err == nil {
		t.Error("started twice")
	}
	if other, err := second.Start(t.Context()); err != nil || other == link {
		t.Errorf("two pages at once: %q, %v", other, err)
	}
}

// What the stream sends is what the script reads.
func TestViewJSON(t *testing.T) {
	s := &stage{}
	s.set("a", "https://as.example", bulk.PhaseAwaiting, "x")
	raw, err := json.Marshal(look(s.Rows()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"summary":"0 of 1 connected, 1 waiting for you","good":0,"all":1,"done":false,"groups":[{"id":"` + id("g", "https://as.example") +
		`","title":"as.example","rows":[{"id":"` + id("r", "/a") + `","server":"a","url":"https://a.example/mcp","phase":"awaiting_consent",` +
		`"word":"waiting for your consent","detail":"x","link":"https://as.example/authorize?client_id=x\u0026state=state-a"}]}]}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	if raw, _ := json.Marshal(look(nil)); string(raw) != `{"summary":"0 of 0 connected","good":0,"all":0,"done":false,"groups":[]}` {
		t.Errorf("nothing: %s", raw)
	}
}
