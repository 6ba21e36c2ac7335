package bulk

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/internal/fake"
)

// fiftyLimit is the time of one server.
const fiftyLimit = 15 * time.Second

// fiftyReasons are the eight broken servers, each at an authorization server that
// has healthy ones too, and what a person is told of them.
var fiftyReasons = map[string]string{
	"nometa": "publishes no metadata", "slow": "timed out resolving authorization server", "badtls": "unknown authority",
	"noregister": "register a client at as3.example", "denied": "access_denied", "tokendown": "503",
	"wrongissuer": "evil.example", "hung": "timed out resolving authorization server",
}

// fifty builds ten authorization servers with five servers each. Eight of the fifty
// are broken, at eight of the ten, so that whatever is wrong with one has neighbours
// that it could hurt.
func fifty(w *world) {
	broken := []string{"nometa", "slow", "badtls", "noregister", "denied", "tokendown", "wrongissuer", "hung"}
	for i := range 10 {
		w.as(fmt.Sprintf("as%d.example", i))
	}
	for n := range 5 {
		for i := range 10 {
			if n == 0 && i < len(broken) { // the broken ones are the first to be worked on
				w.protectBroken(broken[i], fmt.Sprintf("as%d.example", i))
				continue
			}
			w.protect(fmt.Sprintf("good%d%d", i, n), fmt.Sprintf("as%d.example", i))
		}
	}
}

// protectBroken adds a server that is broken in the way its name says.
func (w *world) protectBroken(name, asHost string) {
	as, host := w.servers[asHost], name+".example"
	resource := "https://" + host + "/mcp"
	switch name {
	case "nometa", "wrongissuer":
		w.protect(name, asHost, "https://"+asHost+"/"+name)
	default:
		w.protect(name, asHost)
	}
	target := &w.targets[len(w.targets)-1]
	mine := func(q url.Values) bool { return q.Get("resource") == resource }
	switch name {
	case "slow":
		w.net.add(host, slowly(9*time.Second, w.net.hosts[host]))
	case "hung":
		w.net.add(host, slowly(0, nil))
	case "noregister":
		target.Server.OAuth = &config.OAuth{RedirectURI: "http://127.0.0.1:9999/callback"}
		as.Intercept("register", func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(":9999/")) {
				http.Error(rw, "no", http.StatusForbidden)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(rw, r)
		})
	case "denied":
		as.Intercept("authorize", func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			q := r.URL.Query()
			if !mine(q) {
				next.ServeHTTP(rw, r)
				return
			}
			answer := url.Values{"error": {"access_denied"}, "state": q["state"], "iss": {as.Issuer()}}
			http.Redirect(rw, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
		})
	case "tokendown":
		as.Intercept("token", func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			if _ = r.ParseForm(); mine(r.PostForm) {
				http.Error(rw, "down", http.StatusServiceUnavailable)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(r.PostForm.Encode()))
			next.ServeHTTP(rw, r)
		})
	case "wrongissuer":
		healthy := w.net.hosts[asHost]
		w.net.add(asHost, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/wrongissuer") {
				healthy.ServeHTTP(rw, r)
				return
			}
			_, _ = io.WriteString(rw, `{"issuer":"https://evil.example","authorization_endpoint":"https://evil.example/authorize","token_endpoint":"https://evil.example/token"}`)
		}))
	}
}

// Fifty servers at ten authorization servers, eight of them broken, each in its own
// way: the good ones are handed out, consented to and connected while the hung one
// still holds its place, and what is wrong with one touches no neighbour.
func TestFiftyServersEightBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		fifty(w)
		p := w.start(&Options{Bulk: config.Bulk{PrepareTimeout: fiftyLimit}})
		start := time.Now()
		handed, connectedBeforeHung := 0, 0
		outcomes := p.Prepare(t.Context(), w.targets, ModeMissing, Redirect{}, func(o Outcome) {
			if o.Server == "hung" {
				connectedBeforeHung = countPhase(p.Driver, PhaseConnected)
				if took := time.Since(start); took != fiftyLimit {
					t.Errorf("the hung one ended after %v, want %v", took, fiftyLimit)
				}
			}
			if o.Status != StatusPending {
				return
			}
			if strings.HasPrefix(o.Server, "good") {
				handed++
				if ph := phaseOf(p.Driver, "hung"); ph.Ended() || handed == 42 && ph != PhaseDiscovering {
					t.Errorf("when %s was handed out, the hung one was %s", o.Server, ph)
				}
			}
			page, err := w.consent(t.Context(), o.Login)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = p.Paste(t.Context(), "", page) // the bad ones fail here; rows tell
		})
		for i, o := range outcomes {
			if o.Server != w.targets[i].Server.Name {
				t.Fatalf("outcome %d is that of %s, want %s", i, o.Server, w.targets[i].Server.Name)
			}
		}
		if handed != 42 || connectedBeforeHung != 42 {
			t.Errorf("%d handed out, %d connected before the hung one ended; want 42", handed, connectedBeforeHung)
		}
		if err := p.Wait(t.Context()); err != nil { // the one whose token endpoint is down runs out
			t.Fatal(err)
		}
		checkFifty(t, w, p)
	})
}

func phaseOf(d *Driver, name string) Phase {
	for _, r := range d.Rows() {
		if r.Server == name {
			return r.Phase
		}
	}
	return ""
}

func countPhase(d *Driver, p Phase) (n int) {
	for _, r := range d.Rows() {
		if r.Phase == p {
			n++
		}
	}
	return n
}

func checkFifty(t *testing.T, w *world, p *process) {
	t.Helper()
	good := 0
	for _, r := range p.Rows() {
		want, bad := fiftyReasons[r.Server]
		switch {
		case bad && (r.Phase != PhaseFailed || !strings.Contains(r.Detail, want)):
			t.Errorf("%s is %s (%s), want it to say %q", r.Server, r.Phase, r.Detail, want)
		case !bad && r.Phase != PhaseConnected:
			t.Errorf("%s is %s (%s)", r.Server, r.Phase, r.Detail)
		case !bad:
			good++
		}
	}
	if failed := countPhase(p.Driver, PhaseFailed); good != 42 || failed != 8 {
		t.Errorf("%d connected, %d failed; want 42 and 8", good, failed)
	}
	for _, tg := range w.targets {
		if _, bad := fiftyReasons[tg.Server.Name]; !bad {
			if err := w.callable(p, tg); err != nil {
				t.Errorf("call %s: %v", tg.Server.Name, err)
			}
		}
	}
	for host, as := range w.servers {
		if n := len(as.Requests(fake.EventRegister, "")); n != 1 {
			t.Errorf("%d clients were registered at %s, want one for all", n, host)
		}
	}
}
