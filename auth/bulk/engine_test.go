package bulk

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/test/need"
)

// Half of the consents given, the process gone: the next one finds half connected and
// takes the rest up, at the same address.
func TestRestartAfterHalfOfTheConsents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 5 {
			w.as(fmt.Sprintf("as%d.example", i))
		}
		for i := range 10 {
			w.protect(fmt.Sprintf("s%d", i), fmt.Sprintf("as%d.example", i%5))
		}
		before := w.start(nil)
		first := before.Prepare(t.Context(), w.targets, ModeMissing, Redirect{}, nil)
		for _, o := range first[:5] {
			page, err := w.consent(t.Context(), o.Login)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := before.Paste(t.Context(), "", page); err != nil {
				t.Fatal(err)
			}
		}
		before.end()
		time.Sleep(time.Minute)

		p := w.start(nil)
		second := p.Prepare(t.Context(), w.targets, ModeMissing, Redirect{}, nil)
		for i, o := range second {
			if i < 5 && o.Reason != ReasonConnected {
				t.Errorf("%s: %s", w.targets[i].Server.Name, say(o))
			}
			if i >= 5 && (!o.Joined || o.Login.AuthorizeURL != first[i].Login.AuthorizeURL) {
				t.Errorf("%s does not resume: %s", w.targets[i].Server.Name, say(o))
			}
		}
		for _, o := range second[5:] {
			page, err := w.consent(t.Context(), o.Login)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Paste(t.Context(), "", page); err != nil {
				t.Error(err)
			}
		}
		for _, tg := range w.targets {
			if err := w.callable(p, tg); err != nil {
				t.Errorf("call %s: %v", tg.Server.Name, err)
			}
		}
	})
}

// Many flows at once, and strangers who send whatever they like to the callback: no
// code reaches the wrong flow, and no flow is lost.
func TestHostileCallbacks(t *testing.T) {
	runs := 2
	if need.Proof() {
		runs = 100
	}
	for run := range runs {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			w := newWorld(t)
			for i := range 4 {
				w.as(fmt.Sprintf("as%d.example", i))
			}
			for i := range 20 {
				w.protect(fmt.Sprintf("s%02d", i), fmt.Sprintf("as%d.example", i%4))
			}
			hostileRun(t, w)
		})
	}
}

func hostileRun(t *testing.T, w *world) {
	p := w.start(nil)
	browser := &http.Transport{DisableKeepAlives: true}
	crowd := make(chan struct{}, 64) // more at once only runs out of ports
	var wg sync.WaitGroup
	outcomes := p.Prepare(t.Context(), w.targets, ModeAll, Redirect{Listen: true}, func(o Outcome) {
		if o.Status != StatusPending {
			t.Errorf("outcome %s", say(o))
			return
		}
		page, err := w.consent(t.Context(), o.Login)
		if err != nil {
			t.Error(err)
			return
		}
		u, err := url.Parse(page)
		if err != nil {
			t.Error(err)
			return
		}
		q := u.Query()
		knock := func(method, query string, header ...string) int {
			crowd <- struct{}{}
			defer func() { <-crowd }()
			return knockAt(t, browser, method, o.Login.RedirectURI+"?"+query, header)
		}
		wg.Go(func() { besiege(knock, q) })
		wg.Go(func() {
			if status := knock(http.MethodGet, q.Encode()); status != http.StatusOK {
				t.Errorf("%s: the browser got HTTP %d", o.Server, status)
			}
		})
		wg.Go(func() { besiege(knock, q) })
	})
	wg.Wait()
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		if ph := phaseOf(p.Driver, o.Server); ph != PhaseConnected {
			t.Errorf("%s is %s", o.Server, ph)
		}
		if err := w.callable(p, w.targets[i]); err != nil {
			t.Errorf("%s got the wrong token: %v", o.Server, err)
		}
	}
	for host, as := range w.servers {
		trades := as.Requests(fake.EventToken, "authorization_code")
		if len(trades) != 5 {
			t.Errorf("%s: %d codes were traded, want 5", host, len(trades))
		}
		for _, e := range trades {
			if e.Detail != "ok" {
				t.Errorf("%s: a code was traded with the result %s", host, e.Detail)
			}
		}
	}
}

// knockAt makes one request to the listener and returns the status.
func knockAt(t *testing.T, via http.RoundTripper, method, address string, header []string) int {
	r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/", nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	at, query, _ := strings.Cut(address, "?")
	if r.URL, err = url.Parse(at); err != nil {
		t.Error(err)
		return 0
	}
	r.Host, r.URL.RawQuery = r.URL.Host, query // as it is: some of them cannot be read
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := via.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// besiege sends what must not count.
func besiege(knock func(method, query string, header ...string) int, real url.Values) {
	with := func(change func(url.Values)) string {
		q := url.Values{}
		for k, v := range real {
			q[k] = append([]string(nil), v...)
		}
		change(q)
		return q.Encode()
	}
	for range 3 {
		knock(http.MethodGet, with(func(q url.Values) { q.Set("iss", "https://evil.example") }))
		knock(http.MethodGet, with(func(q url.Values) { q.Set("iss", "https://evil.example"); q.Set("code", "stolen") }))
		knock(http.MethodGet, with(func(q url.Values) { q.Del("iss"); q.Set("code", "injected") }))
		knock(http.MethodGet, with(func(q url.Values) { q.Set("state", "guess") }))
		knock(http.MethodGet, with(func(q url.Values) { q.Del("state") }))
		knock(http.MethodGet, with(func(q url.Values) { q.Add("code", "second") }))
		knock(http.MethodGet, with(func(q url.Values) { q.Del("code"); q.Del("iss"); q.Set("error", "access_denied") }))
		knock(http.MethodGet, with(func(q url.Values) { q.Del("code") }))
		knock(http.MethodPost, real.Encode())
		knock(http.MethodHead, real.Encode())
		knock(http.MethodGet, real.Encode(), "Sec-Purpose", "prefetch")
		knock(http.MethodGet, "%zz&;=&state")
	}
}

// The same through the driver's own door.
func TestHostileAnswers(t *testing.T) {
	w := newWorld(t)
	for i := range 2 {
		w.as(fmt.Sprintf("as%d.example", i))
	}
	for i := range 20 {
		w.protect(fmt.Sprintf("s%02d", i), fmt.Sprintf("as%d.example", i%2))
	}
	p := w.start(nil)
	sub := p.Subscribe()
	var wg sync.WaitGroup
	for _, o := range p.Prepare(t.Context(), w.targets, ModeAll, Redirect{}, nil) {
		page, err := w.consent(t.Context(), o.Login)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(page)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		for range 3 {
			wg.Go(func() {
				for _, bad := range [][3]string{
					{q.Get("state"), q.Get("code"), "https://evil.example"}, {"guess", q.Get("code"), q.Get("iss")}, {"", "x", ""},
				} {
					if _, err := p.Complete(t.Context(), bad[0], code(bad[1]), bad[2]); err == nil {
						t.Errorf("%v was taken", bad)
					}
				}
			})
		}
		wg.Go(func() {
			if _, err := p.Complete(t.Context(), q.Get("state"), code(q.Get("code")), q.Get("iss")); err != nil {
				t.Errorf("%s: %v", o.Server, err)
			}
		})
	}
	wg.Wait()
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, got := range phases(t, sub) {
		if diff := cmp.Diff([]string{"discovering", "awaiting_consent", "exchanging", "connected"}, got); diff != "" {
			t.Errorf("events of %s (-want +got):\n%s", name, diff)
		}
	}
	for _, tg := range w.targets {
		if err := w.callable(p, tg); err != nil {
			t.Errorf("%s: %v", tg.Server.Name, err)
		}
	}
}
