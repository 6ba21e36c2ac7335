package console

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/event"
	"github.com/usher-mcp/usher/internal/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a driver that stands where the test puts it.
type stage struct {
	bus event.Bus[bulk.Event]

	mu   sync.Mutex // guards rows
	rows []bulk.Row
}

func (s *stage) Rows() []bulk.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]bulk.Row(nil), s.rows...)
}

func (s *stage) Subscribe() *event.Subscription[bulk.Event] { return s.bus.Subscribe(0) }

// set puts a server into a phase and tells so.
func (s *stage) set(server, issuer string, p bulk.Phase, detail string) {
	r := bulk.Row{
		Event:   bulk.Event{Server: server, ServerURL: "https://" + server + ".example/mcp", Phase: p, Detail: detail},
		Account: auth.Account{Server: server}, Issuer: issuer, Since: time.Now(),
	}
	if p == bulk.PhaseAwaiting {
		r.Login = &auth.Pending{State: "state-" + server, AuthorizeURL: "https://as.example/authorize?client_id=x&state=state-" + server}
	}
	s.mu.Lock()
	found := false
	for i := range s.rows {
		if s.rows[i].Server == server {
			s.rows[i], found = r, true
		}
	}
	if !found {
		s.rows = append(s.rows, r)
	}
	s.mu.Unlock()
	s.bus.Publish(r.Event)
}

// newPage closes the page with the test.
func newPage(t *testing.T, s *stage, o *ConsentOptions) *Consent {
	t.Helper()
	c := NewConsent(s, o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask makes one request without a network. Edit may change it.
func ask(c http.Handler, path string, edit func(*http.Request)) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7331"+path, nil)
	r.RemoteAddr = "127.0.0.1:50000"
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if len(fake.Secrets(raw)) > 0 {
		t.Error("the page holds a secret")
	}
	return string(raw)
}

// letIn trades a link for a cookie.
func letIn(t *testing.T, c *Consent) *http.Cookie {
	t.Helper()
	link := c.Link()
	r := ask(c, link[strings.Index(link, "/connect"):], nil)
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
		t.Fatalf("HTTP %d, cookies %v", r.StatusCode, r.Cookies())
	}
	return r.Cookies()[0]
}

// news is one server-sent event.
type news struct{ name, data string }

// listen follows a stream. The channel closes with it.
func listen(t *testing.T, client *http.Client, address string, cookie *http.Cookie) <-chan news {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(cookie)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("HTTP %d, %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	out := make(chan news, 100)
	go func() {
		defer close(out)
		var n news
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			switch line := lines.Text(); {
			case line == "":
				if n.name != "" {
					out <- n
				}
				n = news{}
			case strings.HasPrefix(line, ":"):
				n = news{"comment", line}
			case strings.HasPrefix(line, "event: "):
				n.name = line[len("event: "):]
			case strings.HasPrefix(line, "data: "):
				n.data = line[len("data: "):]
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		for range out { // what nobody read
		}
	})
	return out
}

// hear waits until a page says what is wanted of a server.
func hear(t *testing.T, from <-chan news, server string, p bulk.Phase) view {
	t.Helper()
	for n := range from {
		if n.name != "page" {
			continue
		}
		var v view
		if err := json.Unmarshal([]byte(n.data), &v); err != nil {
			t.Fatal(err)
		}
		for _, g := range v.Groups {
			for _, r := range g.Rows {
				if r.Server == server && r.Phase == p {
					return v
				}
			}
		}
	}
	t.Fatalf("the stream ended before %s was %s", server, p)
	return view{}
}

func (s *stage) ServeEvents(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "events\n")
}

func (s *stage) ServeInput(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "input\n")
}
