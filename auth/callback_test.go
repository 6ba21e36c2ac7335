package auth

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/auth/loopback"
	"github.com/usher-mcp/usher/internal/fake"
)

// get makes one request to a listener and returns status, header and page.
func get(t *testing.T, method, address string, header map[string]string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

// checkPage checks what must hold for every page, whatever was asked.
func checkPage(t *testing.T, name string, h http.Header, body string) {
	t.Helper()
	for key, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Referrer-Policy": "no-referrer", "Content-Type": "text/html; charset=utf-8",
	} {
		if !strings.Contains(h.Get(key), want) {
			t.Errorf("%s: %s is %q", name, key, h.Get(key))
		}
	}
	if h.Get("Location") != "" {
		t.Errorf("%s: redirects to %s", name, h.Get("Location"))
	}
	if len(fake.Secrets([]byte(body))) > 0 {
		t.Errorf("%s: the page holds a secret", name)
	}
	for _, bad := range []string{"<script", "<img", "onerror", "hostile", "http://", "https://", "src=", "href="} {
		if strings.Contains(strings.ToLower(body), bad) {
			t.Errorf("%s: the page holds %q:\n%s", name, bad, body)
		}
	}
}

// Nothing but the genuine callback does anything.
func TestListenerIsIndifferent(t *testing.T) {
	w := newWorld(t, nil, nil)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	back, err := w.as.Consent(t.Context(), p.AuthorizeURL)
	if err != nil {
		t.Fatal(err)
	}
	genuine := back.String()
	at := strings.TrimSuffix(p.RedirectURI, loopback.Path)
	with := func(change func(url.Values)) string {
		q := back.Query()
		change(q)
		return p.RedirectURI + "?" + q.Encode()
	}
	const xss = `"><script>alert(1)</script><img src=x onerror=alert(1)>hostile`
	for _, tt := range []struct {
		name, method, address string
		header                map[string]string
		status                int
	}{
		{"favicon", "GET", at + "/favicon.ico", nil, 404},
		{"root", "GET", at + "/", nil, 404},
		{"path with markup", "GET", at + "/" + url.PathEscape(xss), nil, 404},
		{"bare callback", "GET", p.RedirectURI, nil, 400},
		{"head", "HEAD", genuine, nil, 200},
		{"options", "OPTIONS", genuine, nil, 200},
		{"post", "POST", genuine, nil, 405},
		{"put", "PUT", genuine, nil, 405},
		{"prefetch", "GET", genuine, map[string]string{"Sec-Purpose": "prefetch"}, 503},
		{"prerender", "GET", genuine, map[string]string{"Sec-Purpose": "prefetch;prerender"}, 503},
		{"old prefetch", "GET", genuine, map[string]string{"Purpose": "prefetch"}, 503},
		{"firefox prefetch", "GET", genuine, map[string]string{"X-Moz": "prefetch"}, 503},
		{"foreign host", "GET", genuine, map[string]string{"Host": "evil.example"}, 421},
		{"foreign host with port", "GET", genuine, map[string]string{"Host": "evil.example:" + back.Port()}, 421},
		{"other port", "GET", genuine, map[string]string{"Host": "127.0.0.1:1"}, 421},
		{"wrong state", "GET", with(func(q url.Values) { q.Set("state", xss) }), nil, 400},
		{"no state", "GET", with(func(q url.Values) { q.Del("state") }), nil, 400},
		{"wrong issuer", "GET", with(func(q url.Values) { q.Set("iss", xss) }), nil, 400},
		{"no issuer", "GET", with(func(q url.Values) { q.Del("iss") }), nil, 400},
		{"no code", "GET", with(func(q url.Values) { q.Del("code") }), nil, 400},
		{"code twice", "GET", with(func(q url.Values) { q.Add("code", "x") }), nil, 400},
		{"state twice", "GET", with(func(q url.Values) { q.Add("state", "x") }), nil, 400},
		{"error of another login", "GET", with(func(q url.Values) { q.Set("state", "other"); q.Set("error", xss); q.Set("error_description", xss) }), nil, 400},
		{"error from another issuer", "GET", with(func(q url.Values) { q.Set("iss", "https://evil.example"); q.Set("error", "access_denied") }), nil, 400},
		{"broken query", "GET", p.RedirectURI + "?code=%zz", nil, 400},
		{"hostile header", "GET", p.RedirectURI, map[string]string{"User-Agent": xss, "Referer": xss}, 400},
	} {
		status, header, body := get(t, tt.method, tt.address, tt.header)
		if status != tt.status {
			t.Errorf("%s: HTTP %d, want %d", tt.name, status, tt.status)
		}
		checkPage(t, tt.name, header, body)
	}
	if w.tokens("") != 0 {
		t.Fatalf("%d token requests before the genuine callback", w.tokens(""))
	}
	for range 3 { // the browser asks again: the same page, nothing done
		status, header, body := get(t, "GET", genuine, nil)
		if status != 200 || !strings.Contains(body, loopback.LoggedIn.Title()) {
			t.Errorf("genuine callback: HTTP %d\n%s", status, body)
		}
		checkPage(t, "done", header, body)
	}
	if w.tokens("") != 1 {
		t.Errorf("%d token requests", w.tokens(""))
	}
	w.mustCall()
}

// 500 clients that send a byte now and then do not keep the genuine one waiting.
func TestSlowClients(t *testing.T) {
	w := newWorld(t, nil, nil)
	p, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	host := mustURL(t, p.RedirectURI).Host
	for range 500 {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, _ = io.WriteString(c, "GET /callback?x")
	}
	back, err := w.as.Consent(t.Context(), p.AuthorizeURL)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if status, _, _ := get(t, "GET", back.String(), nil); status != 200 || time.Since(start) > (5*time.Second) { // the time that one of them has
		t.Errorf("HTTP %d after %v", status, time.Since(start))
	}
	big := strings.Repeat("x", 64<<10)
	if status, _, _ := get(t, "GET", p.RedirectURI, map[string]string{"X-Big": big}); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB: HTTP %d", status)
	}
}

// One listener, many logins at once, hostile traffic in between: every code ends at
// its own account.
func TestManyLoginsOneListener(t *testing.T) {
	w := newWorld(t, nil, nil)
	const n = 50
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for i := range n {
		wg.Go(func() {
			a := Account{Server: "srv", Label: fmt.Sprint(i)}
			p, err := w.e.Begin(t.Context(), a, w.srv, &LoginOptions{Listen: true})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			seen[mustURL(t, p.RedirectURI).Host] = true
			mu.Unlock()
			back, err := w.as.Consent(t.Context(), p.AuthorizeURL)
			if err != nil {
				t.Error(err)
				return
			}
			get(t, "GET", p.RedirectURI+"?state=guess&code=evil", nil)
			if status, _, _ := get(t, "GET", back.String(), nil); status != 200 {
				t.Errorf("login %d: HTTP %d", i, status)
			}
			if l, err := w.e.Wait(t.Context(), p.State); err != nil || l.Account.Label != fmt.Sprint(i) {
				t.Errorf("login %d ended at %+v, %v", i, l, err)
			}
		})
	}
	wg.Wait()
	if len(seen) != 1 || w.tokens("authorization_code") != n || len(w.as.Requests(fake.EventRegister, "")) != 1 {
		t.Errorf("%d listeners, %d codes traded, %d registrations", len(seen), w.tokens("authorization_code"), len(w.as.Requests(fake.EventRegister, "")))
	}
}

// The browser flow as a whole. The opener is called once, with one checked address.
func TestBrowser(t *testing.T) {
	w := newWorld(t, nil, nil)
	var opened []string
	it := NewInteractive(func(ctx context.Context, page string) error {
		opened = append(opened, page)
		back, err := w.as.Consent(ctx, page)
		if err != nil {
			return err
		}
		get(t, "GET", back.String(), nil)
		return nil
	})
	var began *Pending
	l, err := w.e.Browser(t.Context(), it, w.a, w.srv, nil, func(p *Pending) { began = p })
	if err != nil || len(opened) != 1 || began == nil || began.AuthorizeURL != opened[0] {
		t.Fatalf("login %+v, %v, opened %v", l, err, opened)
	}
	// Without permission nothing opens, and the login waits.
	ctx, cancel := context.WithCancel(t.Context())
	_, err = w.e.Browser(ctx, Interactive{}, w.a, w.srv, nil, func(*Pending) { cancel() })
	wantErr(t, err, context.Canceled)
}

// A configured redirect address is answered at its own port and path; a second
// process with the same store leaves that to the first.
func TestConfiguredRedirect(t *testing.T) {
	w := newWorld(t, nil, nil)
	port := loopback.FreePort()
	w.srv.OAuth.RedirectURI = fmt.Sprintf("http://localhost:%d/oauth/done", port)
	first, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	other := New(w.store, &Options{RoundTripper: w.net})
	defer func() { _ = other.Close() }()
	second, err := other.Begin(t.Context(), Account{Server: "srv", Label: "two"}, w.srv, &LoginOptions{Listen: true})
	if err != nil {
		t.Fatalf("the port is held by a friend: %v", err)
	}
	for _, p := range []*Pending{first, second} {
		back, err := w.as.Consent(t.Context(), p.AuthorizeURL)
		if err != nil {
			t.Fatal(err)
		}
		if status, _, _ := get(t, "GET", back.String(), nil); status != 200 {
			t.Errorf("%s: HTTP %d", p.Account, status)
		}
	}
	if l, err := other.Wait(t.Context(), second.State); err == nil && l.Account.Label != "two" {
		t.Errorf("second login %+v", l)
	}
	if s, err := other.Status(t.Context(), Account{Server: "srv", Label: "two"}); err != nil || s.State != StateOK {
		t.Errorf("second account %+v, %v", s, err)
	}
}

func TestPortInUse(t *testing.T) {
	w := newWorld(t, nil, nil)
	stranger := httptest.NewServer(http.NotFoundHandler())
	defer stranger.Close()
	w.srv.OAuth.RedirectURI = strings.Replace(stranger.URL, "127.0.0.1", "127.0.0.1", 1) + "/callback"
	_, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err == nil || !strings.Contains(err.Error(), "oauth.redirectUri") || !strings.Contains(err.Error(), "paste-back") {
		t.Errorf("error %v", err)
	}
	if mine := fmt.Sprintf("(process %d)", os.Getpid()); runtime.GOOS == "linux" && !strings.Contains(err.Error(), mine) {
		t.Errorf("it does not say who holds the port, %s: %v", mine, err)
	}
	// The remembered port of the shared listener may be taken; any other will do.
	m := w.e.callbacks.identity(t.Context())
	if taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", m.Port)); err == nil { // else it is taken by somebody
		defer func() { _ = taken.Close() }()
	}
	w.srv.OAuth.RedirectURI = ""
	p, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true})
	if err != nil || mustURL(t, p.RedirectURI).Port() == fmt.Sprint(m.Port) {
		t.Errorf("%+v, %v", p, err)
	}
}

// A hosted gateway serves the callback under its own name.
func TestPublicCallback(t *testing.T) {
	w := newWorld(t, nil, nil)
	const public = "https://usher.example/oauth/callback"
	p, err := w.e.Begin(t.Context(), w.a, w.srv, &LoginOptions{Listen: true, Redirect: public})
	if err != nil || p.RedirectURI != public {
		t.Fatalf("%+v, %v", p, err)
	}
	if reg := w.as.Requests(fake.EventRegister, ""); reg[0].Param("application_type") != "web" {
		t.Errorf("registered as %s", reg[0].Params)
	}
	back, err := w.as.Consent(t.Context(), p.AuthorizeURL)
	if err != nil {
		t.Fatal(err)
	}
	stranger := w.e.CallbackHandler(func(*http.Request) string { return "somebody else" })
	rec := httptest.NewRecorder()
	stranger.ServeHTTP(rec, httptest.NewRequest("GET", back.String(), nil))
	if rec.Code != 400 || w.tokens("") != 0 {
		t.Errorf("somebody else finished the login: HTTP %d", rec.Code)
	}
	rec = httptest.NewRecorder()
	w.e.CallbackHandler(nil).ServeHTTP(rec, httptest.NewRequest("GET", back.String(), nil))
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), loopback.LoggedIn.Title()) {
		t.Errorf("HTTP %d %s", rec.Code, rec.Body)
	}
	w.mustCall()
}

// A browser asks twice, and a balancer leads it to two processes, neither of which
// began the login: one trades the code, and the page of the other says how that ended.
func TestCallbackAtTwoProcesses(t *testing.T) {
	for _, tt := range []struct {
		name, fault string
		page        loopback.Outcome
	}{
		{"it works", "token-slow=400", loopback.LoggedIn},
		{"it is refused", "token-error=invalid_grant", loopback.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, nil)
				p, err := w.e.Begin(t.Context(), w.a, w.srv, nil)
				if err != nil {
					t.Fatal(err)
				}
				back, err := w.as.Consent(t.Context(), p.AuthorizeURL)
				if err != nil {
					t.Fatal(err)
				}
				w.as.Set("token-slow=400")
				w.as.Set(tt.fault)
				began := time.Now()
				var wg sync.WaitGroup
				for range 2 {
					e := New(w.store, &Options{RoundTripper: w.net})
					defer func() { _ = e.Close() }()
					wg.Go(func() {
						rec := httptest.NewRecorder()
						e.CallbackHandler(nil).ServeHTTP(rec, httptest.NewRequest("GET", back.String(), nil))
						if rec.Code != 200 || !strings.Contains(rec.Body.String(), tt.page.Title()) {
							t.Errorf("HTTP %d %s", rec.Code, rec.Body)
						}
					})
				}
				wg.Wait()
				if n := w.tokens("authorization_code"); n != 1 {
					t.Errorf("%d codes were traded", n)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("the pages took %v", took)
				}
			})
		})
	}
}
