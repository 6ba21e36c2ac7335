package app

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/auth/bulk"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/console"
	"github.com/usher-mcp/usher/internal/fake"
	"github.com/usher-mcp/usher/vault"
)

// loginLine is a line of the stream of logins.
type loginLine struct {
	Type, Status, Server, Phase, Error string
	AuthorizeURL                       string `json:"authorize_url"`
}

// consoleClient is an HTTP client with a session of a console.
type consoleClient struct {
	*http.Client
	base string
	csrf string
}

func newConsoleClient(t *testing.T, h *App) *consoleClient {
	t.Helper()
	c := console.New(worldOf(h), nil)
	srv := httptest.NewServer(c)
	t.Cleanup(func() {
		c.Close()
		srv.Close()
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &consoleClient{&http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}, srv.URL, ""}
	resp, err := client.Get(srv.URL + c.Link())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return client
}

// answer posts one line and returns the reply.
func (c *consoleClient) answer(t *testing.T, line string) loginLine {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+"/console/login/answers", strings.NewReader(line+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", c.base)
	r.Header.Set("X-CSRF-Token", c.csrf)
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var reply loginLine
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("HTTP %d, %v", resp.StatusCode, err)
	}
	return reply
}

// A program logs in to all servers over HTTP: it follows the events of the console and
// posts the addresses at which the browser ended. A console of another principal takes
// none of them.
func TestConsoleLoginStream(t *testing.T) {
	as := fake.NewAuth(nil)
	_, stop, err := as.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	servers := []config.Server{protected(t, "notes", as), protected(t, "mail", as)}
	store := vault.NewMemory()
	h := openedOn(t, store, &config.Config{Usher: config.DefaultSettings(), Servers: servers})
	stranger := openedAs(t, "mallory", store, &config.Config{Usher: config.DefaultSettings(), Servers: servers[:1]})
	for _, app := range []*App{h, stranger} {
		if err := app.logins.Start(nil, bulk.ModeMissing); err != nil {
			t.Fatal(err)
		}
	}
	client, other := newConsoleClient(t, h), newConsoleClient(t, stranger)
	for _, c := range []*consoleClient{other, client} {
		resp, err := c.Get(c.base + "/console/login/events")
		if err != nil {
			t.Fatal(err)
		}
		c.csrf = resp.Header.Get("X-CSRF-Token")
		if resp.StatusCode != http.StatusOK || c.csrf == "" || resp.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Fatalf("HTTP %d, %v", resp.StatusCode, resp.Header)
		}
		if c == other {
			_ = resp.Body.Close()
			continue
		}
		defer resp.Body.Close()
		connected := map[string]bool{}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			var line loginLine
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			if line.Phase == string(bulk.PhaseConnected) {
				connected[line.Server] = true
			}
			if line.Type != "outcome" {
				continue
			}
			back, err := as.Consent(t.Context(), line.AuthorizeURL)
			if err != nil {
				t.Fatal(err)
			}
			if reply := other.answer(t, back.String()); reply.Status != "rejected" {
				t.Errorf("another principal's console: %+v", reply)
			}
			if reply := client.answer(t, back.String()); reply.Type != "input" || reply.Status != "accepted" || reply.Server != line.Server {
				t.Errorf("%s: %+v", line.Server, reply)
			}
		}
		if len(connected) != 2 {
			t.Errorf("the stream ended with %v connected", connected)
		}
	}
}
